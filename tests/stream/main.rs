//! Streams that compute: what comes out, how far ahead they read, and how they end.

mod call_site;
mod capacity;
mod context;
mod coop;
mod destructors;
mod ends;
mod ends_of_runtimes;
mod fairness;
mod limits;
mod lines;
mod parts;
#[cfg(feature = "test-util")]
mod paused_clock;
mod progress;
mod reader;
mod reaper;
mod slow_items;
#[cfg(feature = "tracing")]
mod spans;
mod window;

#[path = "../support/gate.rs"]
mod gate;
#[cfg(feature = "tracing")]
#[path = "../../crates/core/tests/support/log.rs"]
mod log;
#[path = "../../crates/core/tests/support/parts_of.rs"]
mod parts_of;
#[cfg(feature = "test-util")]
#[path = "../../crates/core/tests/support/paused.rs"]
mod paused;
#[path = "../../crates/core/tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use alloc_tracker::Allocator;
use futures::Stream;
use futures::stream;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use twolane::stream::{Buffered, Limit, OnCpu, Stage};

/// Counts what a test's own thread allocates.
#[global_allocator]
static ALLOCATOR: Allocator<std::alloc::System> = Allocator::system();

/// Uses a core for so long, as an item of that cost.
fn spin(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// A source that a test feeds: pending while it is empty, ended when the sender is gone.
fn channel<T: Send + 'static>() -> (UnboundedSender<T>, impl Stream<Item = T> + Send + Unpin) {
    let (sender, mut receiver) = unbounded_channel();
    (sender, stream::poll_fn(move |cx| receiver.poll_recv(cx)))
}

/// The one or the other, of the same stages.
fn buffered<S, G, L>(stages: OnCpu<S, G, L>, items: usize, ordered: bool) -> Buffered<G::Output>
where
    S: Stream<Item: Send> + Send + 'static,
    G: Stage<S::Item, Output: Send>,
    L: Limit<S::Item, G::Output>,
{
    match ordered {
        true => stages.buffered(items),
        false => stages.buffer_unordered(items),
    }
}
