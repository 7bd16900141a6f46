//! Fan-in and fan-out.
//!
//! Replaces Go's fan: N goroutines that read one channel, and one more that merges what
//! they send. In Rust that is `futures`' `buffer_unordered(n)` over `spawn_blocking`, which
//! pays a thread hop for each item, and starts nothing while its consumer is busy. Here
//! the items travel in batches, and go on meanwhile. If the order matters, write
//! `buffered`: it costs no more.

use futures::stream::select_all;
use futures::{Stream, TryStreamExt};
use twolane::stream::Buffered;
use twolane::{CpuStreamExt, Handle};

use crate::Error;

/// How many items are under way.
const WINDOW: usize = 256;
/// How many outputs are written at once.
pub const WRITERS: usize = 8;

/// Merges the items of several sources, computes on all threads of the lane, and yields
/// each output once it is there.
pub fn fan<S, O>(
    cpu: &Handle,
    sources: Vec<S>,
    compute: impl Fn(S::Item) -> O + Send + Sync + 'static,
) -> Buffered<O>
where
    S: Stream + Send + Unpin + 'static,
    S::Item: Send + 'static,
    O: Send + 'static,
{
    select_all(sources)
        .on_cpu(cpu)
        .map(compute)
        .buffer_unordered(WINDOW)
}

/// Fans the outputs out again, to writers on the I/O lane.
pub async fn write_all<O, F>(outputs: Buffered<O>, write: impl Fn(O) -> F) -> Result<(), Error>
where
    F: Future<Output = Result<(), Error>>,
{
    outputs
        .err_into()
        .try_for_each_concurrent(WRITERS, write)
        .await
}
