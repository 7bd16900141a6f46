//! How a plain thread waits for a future.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use tokio::task::coop;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls `future` on this thread, which sleeps between the wakes.
///
/// Inside a Tokio task all polls here are in one poll of that task, whose cooperative
/// budget is not renewed: a future that spends it would never become ready.
pub(crate) fn block_on<F: Future + Unpin>(future: F) -> F::Output {
    let mut future = coop::unconstrained(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        match Pin::new(&mut future).poll(&mut cx) {
            Poll::Ready(output) => return output,
            // A stray token makes one round more.
            Poll::Pending => thread::park(),
        }
    }
}
