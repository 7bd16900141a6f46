//! Waits for a future on a plain thread.

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

thread_local! {
    static WAKER: Waker = waker();
}

fn waker() -> Waker {
    Waker::from(Arc::new(Unpark(thread::current())))
}

/// Polls `future` on the current thread, which sleeps between the wakes.
///
/// Inside a Tokio task all polls here belong to one poll of that task. Tokio does not
/// renew its cooperative budget meanwhile, so a future that has used it up would never
/// become ready: hence `unconstrained`.
pub(crate) fn block_on<F: Future + Unpin>(future: F) -> F::Output {
    let mut future = coop::unconstrained(future);
    // A destructor of another thread-local may wait, when this one is gone.
    let waker = WAKER.try_with(Waker::clone).unwrap_or_else(|_| waker());
    let mut cx = Context::from_waker(&waker);
    loop {
        match Pin::new(&mut future).poll(&mut cx) {
            Poll::Ready(output) => return output,
            // A stray unpark token only costs one more poll.
            Poll::Pending => thread::park(),
        }
    }
}
