//! Jobs that do what they are told, and tell what is done to them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::task::{Context, Poll, Wake};

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::{StreamExt, executor};
use twolane_core::{
    AbortHandle, Cancelled, Handle, JobContext, JoinError, JoinErrorKind, Permit, Task,
};

use crate::calls::{Kind, Tell};
use crate::model::End;

/// A job, from outside.
pub(crate) struct Real {
    /// Until it is awaited to its end, dropped or detached. None also if the call
    /// gave the work back.
    pub(crate) task: Option<Task<usize>>,
    /// Of the same; it stays.
    pub(crate) abort: Option<AbortHandle>,
    gate: UnboundedSender<Order>,
    /// How often what it had captured was dropped.
    pub(crate) drops: Arc<AtomicUsize>,
    pub(crate) kind: Kind,
    /// Its task was polled with this.
    pub(crate) waker: Option<Arc<Flag>>,
}

/// What a job is told to do; a closure that was handed its context has one.
type Deed = Box<dyn FnOnce(Option<&JobContext>) + Send>;

enum Order {
    Tell(Tell),
    /// Only for one that keeps its thread. A closure may have a context.
    Do(Deed),
}

impl Real {
    /// A job that is yet to be submitted: this, and what is to be submitted.
    pub(crate) fn new(
        job: usize,
        kind: Kind,
        first: Option<Tell>,
        steps: mpsc::Sender<usize>,
    ) -> (Self, Work) {
        let (gate, orders) = unbounded();
        let drops = Arc::new(AtomicUsize::new(0));
        let this = Self {
            task: None,
            abort: None,
            gate,
            drops: drops.clone(),
            kind,
            waker: None,
        };
        if let Some(first) = first {
            this.tell(first);
        }
        let work = Work {
            job,
            kind,
            orders,
            steps,
            _captured: Captured(drops),
        };
        (this, work)
    }

    pub(crate) fn tell(&self, tell: Tell) {
        self.order(Order::Tell(tell));
    }

    /// Has the job, which keeps its thread, call `f`.
    pub(crate) fn call<R: Send + 'static>(
        &self,
        f: impl FnOnce(Option<&JobContext>) -> R + Send + 'static,
    ) -> mpsc::Receiver<R> {
        let (reply, answer) = mpsc::channel();
        let call = move |job: Option<&JobContext>| drop(reply.send(f(job)));
        self.order(Order::Do(Box::new(call)));
        answer
    }

    fn order(&self, order: Order) {
        // One that was closed in the queue may have dropped its end already.
        let _ = self.gate.unbounded_send(order);
    }

    pub(crate) fn submitted(&mut self, task: Task<usize>) {
        self.abort = Some(task.abort_handle());
        self.task = Some(task);
    }
}

struct Captured(Arc<AtomicUsize>);

impl Drop for Captured {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// How work is submitted.
pub(crate) enum Way<'a> {
    Spawn(&'a Handle),
    By(Permit),
}

pub(crate) struct Work {
    job: usize,
    kind: Kind,
    orders: UnboundedReceiver<Order>,
    steps: mpsc::Sender<usize>,
    _captured: Captured,
}

impl Work {
    pub(crate) fn submit(self, way: Way<'_>) -> Task<usize> {
        match self.kind {
            Kind::Closure => {
                let closure = || match self.run_as_closure(None) {
                    Ok(output) => output,
                    Err(_) => unreachable!("it has no context"),
                };
                match way {
                    Way::Spawn(handle) => handle.spawn_cpu(closure),
                    Way::By(permit) => permit.spawn_cpu(closure),
                }
            }
            Kind::ClosureWith => {
                let closure = |job: &JobContext| self.run_as_closure(Some(job));
                match way {
                    Way::Spawn(handle) => handle.spawn_cpu_with(closure),
                    Way::By(permit) => permit.spawn_cpu_with(closure),
                }
            }
            Kind::Busy | Kind::Sleepy => {
                let future = self.into_future();
                match way {
                    Way::Spawn(handle) => handle.spawn(future),
                    Way::By(permit) => permit.spawn(future),
                }
            }
        }
    }

    fn run_as_closure(mut self, context: Option<&JobContext>) -> Result<usize, Cancelled> {
        // The test does not listen any more once a case has failed.
        let _ = self.steps.send(self.job);
        loop {
            match (self.wait(context), context) {
                (After::End, _) => return Ok(self.job),
                (After::Told(Tell::Checkpoint), Some(context)) => context.checkpoint()?,
                _ => {}
            }
        }
    }

    fn into_future(self) -> impl Future<Output = usize> + Send + 'static {
        let (job, steps) = (self.job, self.steps.clone());
        let future = Box::pin(self.run_as_future());
        Stepped { job, steps, future }
    }

    async fn run_as_future(mut self) -> usize {
        let mut blocks = self.kind == Kind::Busy;
        loop {
            let after = if blocks {
                self.wait(None)
            } else {
                let order = self.orders.next().await;
                self.obey(order, None)
            };
            match after {
                After::End => return self.job,
                After::Told(Tell::Block) => blocks = true,
                After::Told(Tell::Suspend) => blocks = false,
                After::Told(_) | After::Done => {}
            }
        }
    }

    /// On the thread, which it keeps.
    fn wait(&mut self, context: Option<&JobContext>) -> After {
        let order = executor::block_on(self.orders.next());
        self.obey(order, context)
    }

    fn obey(&mut self, order: Option<Order>, context: Option<&JobContext>) -> After {
        match order {
            Some(Order::Tell(Tell::End)) => After::End,
            // Without a word: that of the panic hook would be in the way.
            Some(Order::Tell(Tell::Panic)) => std::panic::resume_unwind(Box::new(self.job)),
            Some(Order::Tell(tell)) => After::Told(tell),
            Some(Order::Do(call)) => {
                call(context);
                After::Done
            }
            // The case has failed, and is over.
            None => After::End,
        }
    }
}

enum After {
    End,
    Told(Tell),
    Done,
}

/// Tells of each poll before it begins.
struct Stepped<F> {
    job: usize,
    steps: mpsc::Sender<usize>,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Stepped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // The test does not listen any more once a case has failed.
        let _ = self.steps.send(self.job);
        self.future.as_mut().poll(cx)
    }
}

pub(crate) fn end_of(error: &JoinError) -> End {
    let ends = [
        (error.is_panic(), End::Panicked),
        (error.is_cancelled(), End::Cancelled),
        (error.kind() == JoinErrorKind::Expired, End::Expired),
        (error.kind() == JoinErrorKind::Shutdown, End::ShutDown),
        (error.kind() == JoinErrorKind::QueueFull, End::QueueFull),
    ];
    let mut is = ends.into_iter().filter(|(is, _)| *is);
    let (Some((_, end)), None) = (is.next(), is.next()) else {
        panic!("not one of those that can be: {error:?}");
    };
    end
}

/// As the awaiter sees it; both outputs and panics carry the job's number.
pub(crate) fn end_of_task(job: usize, result: Result<usize, JoinError>) -> End {
    match result {
        Ok(number) => {
            assert_eq!(number, job, "another job's output");
            End::Output
        }
        Err(error) => {
            let end = end_of(&error);
            if let Ok(payload) = error.try_into_panic() {
                assert_eq!(payload.downcast_ref(), Some(&job), "another job's panic");
            }
            end
        }
    }
}

/// A waker that remembers.
#[derive(Default)]
pub(crate) struct Flag(AtomicBool);

impl Flag {
    pub(crate) fn was_woken(&self) -> bool {
        self.0.load(SeqCst)
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}
