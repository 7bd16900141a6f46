//! [`run_on`] and [`stream_on`]: an operation as one job of the lane, whose end is an error.

use std::error::Error;

use futures::{Stream, StreamExt};
use twolane_core::io::BridgeError;
use twolane_core::{Handle, JoinError, adapters};
use vortex_error::{VortexError, VortexResult, vortex_err};

/// Runs `operation`, any future that uses vortex, on the CPU lane of `cpu`: to open a file and
/// read it, to write one.
///
/// It begins with the call, before the first poll. Vortex computes between the tasks that it
/// spawns, too: it parses footers, and a whole result is put together by its reader. Here that runs
/// on the lane.
///
/// # Errors
///
/// Those of `operation`, and those of the lane: see [the crate](crate#errors).
///
/// # Cancel safety
///
/// Dropping the future cancels the operation: its jobs end at their next poll, and requests
/// that are on their way are dropped.
///
/// # Cost
///
/// That of a job.
///
/// # Examples
///
/// ```
/// # use twolane_vortex::{on_lane, run_on};
/// # use vortex::VortexSessionDefault;
/// # use vortex::array::{IntoArray, arrays::PrimitiveArray, stream::ArrayStreamExt};
/// # use vortex::session::VortexSession;
/// use vortex::file::{OpenOptionsSessionExt, WriteOptionsSessionExt};
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let cpu = twolane_core::CpuRuntime::new()?;
/// # let session = on_lane(VortexSession::default(), cpu.handle());
/// # let numbers: PrimitiveArray = (0..1_000_u64).collect();
/// let rows = run_on(cpu.handle(), async move {
///     let mut bytes = Vec::new();
///     let write = session.write_options();
///     write.write(&mut bytes, numbers.into_array().to_array_stream()).await?;
///     let file = session.open_options().open_buffer(bytes)?;
///     Ok(file.scan()?.into_array_stream()?.read_all().await?.len())
/// });
/// assert_eq!(rows.await?, 1_000);
/// # Ok(()) }
/// ```
#[track_caller]
pub fn run_on<T, F>(
    cpu: &Handle,
    operation: F,
) -> impl Future<Output = VortexResult<T>> + Send + use<T, F>
where
    F: Future<Output = VortexResult<T>> + Send + 'static,
    T: Send + 'static,
{
    let job = cpu.spawn(operation);
    let cpu = cpu.clone();
    async move {
        match job.await {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(error)) => Err(or_closed(&cpu, error)),
            Err(error) => Err(or_closed(&cpu, vortex_err!(External: error))),
        }
    }
}

/// Polls `scan`, a stream of vortex, on the CPU lane of `cpu`, and yields its items to the
/// reader here.
///
/// The scan is ahead of the reader by less than `limit` and one item; `size` says how much an item
/// counts, and an item counts at least 1. Besides, the scan itself is ahead by the splits that it
/// runs at a time ([`concurrency`] for each core). It keeps its place in a limited queue until the
/// stream ends or is dropped.
///
/// [`concurrency`]: https://docs.rs/vortex-layout/0.90.0/vortex_layout/scan/scan_builder/struct.ScanBuilder.html#method.with_concurrency
///
/// # Errors
///
/// Those of `scan`, and those of the lane: see [the crate](crate#errors). A stream that is cut
/// short ends with an error.
///
/// # Cancel safety
///
/// Dropping the stream cancels the scan, as with [`run_on`].
///
/// # Cost
///
/// That of a job, and a wake-up of the reader for each item that it waits for.
///
/// # Examples
///
/// See [the crate](crate).
#[track_caller]
pub fn stream_on<T, S, W>(
    cpu: &Handle,
    scan: S,
    limit: usize,
    size: W,
) -> impl Stream<Item = VortexResult<T>> + Send + use<T, S, W>
where
    S: Stream<Item = VortexResult<T>> + Send + 'static,
    T: Send + 'static,
    W: Fn(&T) -> usize + Send + 'static,
{
    let size = move |item: &VortexResult<T>| item.as_ref().map_or(0, &size);
    let items = cpu.stream_from_cpu(scan, limit, size);
    let cpu = cpu.clone();
    items.map(move |item| match item {
        Ok(Ok(item)) => Ok(item),
        Ok(Err(error)) => Err(or_closed(&cpu, error)),
        Err(cut) => Err(or_closed(&cpu, vortex_err!(External: cut))),
    })
}

/// What a shutdown drops is a panic of vortex in the jobs that await it, or an error of its own.
/// A job may see that before the shutdown reaches the job itself.
fn or_closed(cpu: &Handle, error: VortexError) -> VortexError {
    adapters::close_error(cpu).map_or(error, |closed| vortex_err!(External: closed))
}

/// Returns whether an operation failed because the lane was full or was shut down, or the
/// deadline of its handle had passed: a service answers 503.
///
/// It looks at the error and its [sources](Error::source).
///
/// # Examples
///
/// ```
/// use twolane_vortex::{is_unavailable, run_on};
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cpu = twolane_core::CpuRuntime::new()?;
/// cpu.shutdown().await;
/// let error = run_on(cpu.handle(), async { Ok(1) }).await.unwrap_err();
/// assert!(is_unavailable(&error));
/// # Ok(()) }
/// ```
pub fn is_unavailable(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let of_job = error.downcast_ref().is_some_and(JoinError::is_unavailable);
        let of_bridge = error.downcast_ref();
        if of_job || of_bridge.is_some_and(BridgeError::is_unavailable) {
            return true;
        }
        next = error.source();
    }
    false
}
