//! Which thread woke a request: a future around the request's future, with a waker of its own.
//!
//! In hyper's client a response reaches the request through a oneshot channel that the connection's
//! driver task completes (`hyper::client::dispatch::Callback::send`, for HTTP/1 and HTTP/2), and
//! sending on it wakes the receiver's waker there and then. So the last wake before the request is
//! ready was done by the thread that ran the driver, and that thread's name says which lane drove
//! the connection. What else can wake a request comes earlier: the pool handing over a connection,
//! its own connect making progress. The body is five bytes: HTTP/1's driver hands it over in the
//! poll that hands over the head, and if that comes as a wake of its own, it is again the driver's.
//!
//! One wake can still be mistaken for the driver's. When the pool serves a request whose own
//! connect is under way, that connect goes on as a background task, and until that task is first
//! polled its progress wakes the request. Such a wake comes tens of milliseconds before the
//! response does; should it ever share the last interval between two polls with the driver's and
//! come from another lane, the request is counted as [`Trace::ambiguous`].

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use crate::lane::Lane;

/// What was seen of one future's life.
pub struct Trace {
    /// The last wake before the future was ready: when, and on which lane.
    pub last_wake: Option<(Instant, Lane)>,
    /// The wakes since the last poll but one came from more than one lane.
    pub ambiguous: bool,
    pub ready: Instant,
}

/// Runs a future and gives its output together with its [`Trace`].
pub struct Traced<F> {
    future: Pin<Box<F>>,
    log: Arc<WakeLog>,
}

#[derive(Default)]
struct WakeLog(Mutex<Log>);

#[derive(Default)]
struct Log {
    forward: Option<Waker>,
    /// Since the poll before this one began.
    wakes: Vec<(Instant, Lane)>,
}

impl<F: Future> Traced<F> {
    pub fn new(future: F) -> Self {
        Self {
            future: Box::pin(future),
            log: Arc::default(),
        }
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = (F::Output, Trace);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let before = {
            let mut log = self.log.0.lock().unwrap();
            log.forward = Some(cx.waker().clone());
            std::mem::take(&mut log.wakes)
        };
        let waker = Waker::from(Arc::clone(&self.log));
        let Poll::Ready(output) = self.future.as_mut().poll(&mut Context::from_waker(&waker))
        else {
            return Poll::Pending;
        };
        let ready = Instant::now();
        let mut wakes = before;
        wakes.append(&mut self.log.0.lock().unwrap().wakes);
        let last_wake = wakes.last().copied();
        let trace = Trace {
            last_wake,
            ambiguous: wakes
                .iter()
                .any(|(_, lane)| Some(*lane) != last_wake.map(|w| w.1)),
            ready,
        };
        Poll::Ready((output, trace))
    }
}

impl Wake for WakeLog {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let wake = (Instant::now(), Lane::of_current_thread());
        let forward = {
            let mut log = self.0.lock().unwrap();
            log.wakes.push(wake);
            log.forward.clone()
        };
        if let Some(forward) = forward {
            forward.wake();
        }
    }
}
