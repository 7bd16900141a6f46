//! Whether an error is that of a lane that takes no query now.

use std::error::Error;
use std::io;

use twolane_core::JoinError;
use twolane_core::io::BridgeError;

/// Returns whether the query failed because the lane was full or was shut down, or the query's
/// deadline had passed: a service answers 503, if it has not sent anything.
///
/// It looks at the error and its [sources](Error::source), whatever has wrapped them: an arrow
/// error, an [`io::Error`], a `DataFusionError`, or the [`JoinError`] of a stream's `on_cpu`.
///
/// # Examples
///
/// ```
/// # use datafusion::prelude::SessionContext;
/// # use twolane::{CpuRuntime, Priority};
/// use twolane_datafusion::{is_unavailable, run_on};
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let ctx = SessionContext::new();
/// let cpu = CpuRuntime::builder().queue_limit(Priority::Normal, 1).build()?;
/// let other = cpu.handle().reserve().await?;
/// let plan = async move { ctx.sql("select 1").await };
/// assert!(is_unavailable(&run_on(cpu.handle(), plan).await.unwrap_err()));
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
        // An `io::Error` leaves out what it wraps: its source is that one's source.
        let wrapped = error.downcast_ref().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::error::ArrowError;
    use datafusion::error::DataFusionError;

    use super::*;

    fn refused() -> JoinError {
        let io = tokio::runtime::Runtime::new().unwrap();
        let cpu = twolane_core::CpuRuntime::builder().io_handle(io.handle().clone());
        let cpu = cpu.build().unwrap();
        let handle = cpu.handle().clone();
        io.block_on(cpu.shutdown());
        io.block_on(handle.spawn_cpu(|| ())).unwrap_err()
    }

    #[test]
    fn it_is_found_in_whatever_wraps_it() {
        let external = || DataFusionError::External(Box::new(refused()));
        let io = || io::Error::other(refused());
        let context = DataFusionError::Context("a join".to_owned(), Box::new(external()));
        let written = ArrowError::IoError("written".to_owned(), io());
        for found in [
            external(),
            context,
            DataFusionError::Shared(Arc::new(external())),
            DataFusionError::Collection(vec![external()]),
            DataFusionError::IoError(io()),
            DataFusionError::ArrowError(Box::new(written), None),
            DataFusionError::IoError(io::Error::other(external())),
        ] {
            assert!(is_unavailable(&found), "{found:?}");
        }
        for other in [
            DataFusionError::Plan("no table".to_owned()),
            DataFusionError::IoError(io::Error::other("full disk")),
            DataFusionError::IoError(io::ErrorKind::NotFound.into()),
        ] {
            assert!(!is_unavailable(&other), "{other:?}");
        }
    }
}
