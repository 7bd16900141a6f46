//! Whether an error is that of a lane that takes no query now.

use std::error::Error;

use twolane_core::{BridgeError, JoinError};

/// Returns whether the query failed because the lane was full or was shut down, or the query's
/// deadline had passed: a service answers 503, if it has not sent anything.
///
/// It looks at the error and its [sources](Error::source), whatever has wrapped them: an arrow
/// error, a `DataFusionError`, or the [`JoinError`] of a stream's `on_cpu`.
///
/// # Examples
///
/// ```
/// # use datafusion::prelude::SessionContext;
/// # use twolane::{Backend, CpuRuntime, Priority};
/// use twolane_datafusion::{is_unavailable, run_on};
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let ctx = SessionContext::new();
/// let builder = CpuRuntime::builder().backend(Backend::Runtime);
/// let cpu = builder.queue_limit(Priority::Normal, 1).build()?;
/// let other = cpu.handle().reserve().await?;
/// let plan = async move { ctx.sql("select 1").await };
/// assert!(is_unavailable(&run_on(&cpu.handle(), plan).await.unwrap_err()));
/// # drop(other);
/// # Ok(()) }
/// ```
pub fn is_unavailable(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let of_job = error.downcast_ref().is_some_and(JoinError::is_unavailable);
        if of_job
            || error
                .downcast_ref()
                .is_some_and(BridgeError::is_unavailable)
        {
            return true;
        }
        next = error.source();
    }
    false
}
