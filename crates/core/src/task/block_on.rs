//! Waits for a future on a plain thread.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use tokio::sync::Mutex;
use tokio::task::coop;

use super::worker;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    static WAKER: Waker = waker();
}

fn waker() -> Waker {
    Waker::from(Arc::new(Unpark(thread::current())))
}

/// Panics on a thread that polls tasks of a Tokio runtime, outside the jobs of a lane: those tasks
/// would wait, in silence.
#[track_caller]
pub(crate) fn assert_may_block() {
    if !worker::is_running() {
        // Tokio tells by a panic alone what this thread does.
        drop(Mutex::new(()).blocking_lock());
    }
}

/// Polls `future` on the current thread, which sleeps between the wakes. If it has to, the thread
/// [may block](assert_may_block).
///
/// Inside a Tokio task all polls here belong to one poll of that task. Tokio does not
/// renew its cooperative budget meanwhile, so a future that has used it up would never
/// become ready: hence `unconstrained`.
#[track_caller]
pub(crate) fn block_on<F: Future + Unpin>(future: F) -> F::Output {
    let mut future = coop::unconstrained(future);
    // A destructor of another thread-local may wait, when this one is gone.
    let waker = WAKER.try_with(Waker::clone).unwrap_or_else(|_| waker());
    let mut cx = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = Pin::new(&mut future).poll(&mut cx) {
            return output;
        }
        assert_may_block();
        // A stray unpark token only costs one more poll.
        thread::park();
    }
}
