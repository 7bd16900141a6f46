//! `spawn_io`: a future as a Tokio task of the I/O runtime. Its awaiting side is an
//! [`IoJoin`](crate::task::IoJoin).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use stallwatch::Name;

use crate::error::CloseReason;
use crate::guard::on_drop;
use crate::io_lane::enter_for_drop;
use crate::lane::{Submitter, thread};
use crate::panics;
use crate::sync::{AtomicBool, Ordering::SeqCst};
use crate::task::{IoJoin, IoOutcome, Task, is_large};
use crate::trace::{self, Origin};

const DESTRUCTOR: &str = "the destructor of a future on the I/O lane";
const SPAN: &str = "the end of a span around a future on the I/O lane";

/// Runs `future` on the I/O lane, also if the CPU lane was shut down.
#[track_caller]
pub(crate) fn spawn_io<F>(submitter: &Submitter, future: F) -> Task<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    match const { is_large::<F>() } {
        true => spawn(submitter, Box::pin(future)),
        false => spawn(submitter, future),
    }
}

#[track_caller]
fn spawn<F>(submitter: &Submitter, future: F) -> Task<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let Ok(io) = submitter.io_runtime() else {
        return Task::refused(CloseReason::NoIoLane.into());
    };
    let exempt = thread::is_exempt(&submitter.levels).then(|| Arc::new(AtomicBool::new(true)));
    let scope = Scope {
        site: submitter.site_or_caller(),
        origin: Origin::capture(),
        submitter: Some(submitter.clone()),
        exempt: exempt.clone(),
    };
    let (future, scope) = (Some(future), Some(scope));
    Task::on_io(IoJoin::new(io.spawn(IoTask { future, scope }), exempt))
}

/// What is around the future while it is polled and dropped: the span of its submitter, and the
/// submitter's handle as the current one.
struct Scope {
    /// `None` only while it is entered.
    submitter: Option<Submitter>,
    /// Set if it was exempt where it was submitted ([`thread::is_exempt`]). False once its task was
    /// detached.
    exempt: Option<Arc<AtomicBool>>,
    origin: Option<Origin>,
    /// Where it was spawned, for the watch.
    site: Name,
}

impl Scope {
    fn run<R>(&mut self, f: impl FnOnce() -> R) -> R {
        let is_exempt = self.exempt.as_ref().is_some_and(|it| it.load(SeqCst));
        // It is lent: a clone would write the count that all threads share.
        let own = &mut self.submitter;
        let number = thread::enter(own, is_exempt);
        let _back = on_drop(|| *own = own.take().or_else(|| Some(thread::leave(number)?.0)));
        trace::in_scope(self.origin.as_ref(), f)
    }
}

pin_project! {
    struct IoTask<F: Future> {
        // Both are `None` once it has ended.
        #[pin]
        future: Option<F>,
        scope: Option<Scope>,
    }

    impl<F: Future> PinnedDrop for IoTask<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let Some(mut scope) = this.scope.take() else {
                return;
            };
            // A runtime that is gone drops the task on the submitter's thread.
            let io = scope.submitter.as_ref();
            let io = io.and_then(|it| it.levels.lane.io.handle.clone());
            let _io = enter_for_drop(io.as_ref());
            panics::run_hook(SPAN, || scope.run(|| drop_quietly(&mut this.future)));
            // It is still there if the subscriber panicked.
            drop_quietly(&mut this.future);
            panics::drop_quietly(SPAN, scope);
        }
    }
}

/// A panic of the destructor must not lose the output, nor leave the drop of the task.
fn drop_quietly<F>(future: &mut Pin<&mut Option<F>>) {
    panics::run_hook(DESTRUCTOR, || future.set(None));
}

impl<F: Future> Future for IoTask<F> {
    type Output = IoOutcome<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let scope = this.scope.as_mut();
        let scope = scope.expect("Tokio polls no task that has ended");
        let _entered = stallwatch::enter(scope.site);
        // The output goes there at once: each move takes as much of the stack as it is large.
        let mut made = IoOutcome(None);
        let poll = |future: &mut Pin<&mut Option<F>>| {
            let future = future.as_mut().as_pin_mut();
            let future = future.expect("it is dropped with `scope`");
            future.poll(cx).map(|output| made.0 = Some(Ok(output)))
        };
        let step = || {
            let polled = panics::or_drop(DESTRUCTOR, &mut this.future, |f| f.set(None), poll);
            if polled.is_ready() {
                // Drop the future before publishing the output, as with a job.
                drop_quietly(&mut this.future);
            }
            polled
        };
        match panics::catch(|| scope.run(step)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(())) => {}
            Err(payload) => {
                // It is still there if the subscriber panicked.
                drop_quietly(&mut this.future);
                made = IoOutcome(Some(Err(payload)));
            }
        }
        // The close of a span calls the subscriber: its panic would lose the output, too.
        panics::drop_quietly(SPAN, this.scope.take());
        Poll::Ready(made)
    }
}
