//! A pool of workers, each with a state of its own.
//!
//! Replaces Go's worker pool: N goroutines that range over a channel of jobs, each with
//! its buffers. In Rust that is N threads behind a channel, or `spawn_blocking` with a
//! `thread_local`. `map_init` makes the state once for each worker, not for each item. It
//! is for what is expensive to make: a compressor, a compiled query, a scratch buffer.

use flate2::{Compress, Compression, FlushCompress};
use futures::stream;
use tokio::sync::mpsc;
use twolane::stream::Buffered;
use twolane::{CpuStreamExt, Handle};

/// How many jobs are queued, run, or wait for the consumer.
const WINDOW: usize = 64;

/// Compresses what comes through the channel. The pool ends with it.
pub fn pool(
    cpu: &Handle,
    mut jobs: mpsc::Receiver<Vec<u8>>,
    compressor: impl Fn() -> Compress + Send + Sync + 'static,
) -> Buffered<Vec<u8>> {
    stream::poll_fn(move |cx| jobs.poll_recv(cx))
        .on_cpu(cpu)
        .map_init(compressor, |compressor, document| {
            compress(compressor, &document)
        })
        .buffered(WINDOW)
}

/// Some hundred kilobytes.
pub fn compressor() -> Compress {
    Compress::new(Compression::fast(), true)
}

/// The state comes as the item before has left it.
fn compress(compressor: &mut Compress, document: &[u8]) -> Vec<u8> {
    compressor.reset();
    let mut compressed = Vec::with_capacity(document.len() + 64);
    loop {
        let input = &document[compressor.total_in() as usize..];
        let status = compressor
            .compress_vec(input, &mut compressed, FlushCompress::Finish)
            .expect("a compressor takes any bytes");
        if status == flate2::Status::StreamEnd {
            return compressed;
        }
        compressed.reserve(document.len());
    }
}
