//! How a pump of the CPU lane shares a queue with a limit.
//!
//! It runs in jobs, each of which ends when the pump waits: a stream whose consumer is slow,
//! or whose source is pending, must not keep a permit of the queue from others. What it
//! waits for may be a job of the same queue. Between two jobs a task of the I/O lane waits
//! for the pump's next wake-up, and then for a permit.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use super::shared::Message;
use crate::admission::{Admit, DropOnLane};
use crate::error::CloseReason;
use crate::lane::Level;
use crate::task::Task;
use crate::task::slice::yield_now;

/// The waker of the pump, whatever polls it. A wake-up is kept until the pump is polled.
#[derive(Default)]
struct Wakeups(Notify);

impl Wake for Wakeups {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify_one();
    }
}

impl Wakeups {
    /// Whether the pump was woken since the last call.
    fn take(&self) -> bool {
        let polled = pin!(self.0.notified()).poll(&mut Context::from_waker(Waker::noop()));
        polled.is_ready()
    }
}

/// A pump between its polls.
type Parked<P> = DropOnLane<Pin<Box<P>>>;

/// The task of the I/O lane. Its fields are dropped in this order: the consumer is told
/// before the pump is dropped, which would guess another reason.
struct Turns<P: Send + 'static, O> {
    gone: IoRuntimeGone<O>,
    next: Option<Parked<P>>,
    /// Its output, too, holds the pump.
    turn: Option<Task<Option<Parked<P>>>>,
}

/// The I/O runtime has dropped the task: the pump will not go on.
struct IoRuntimeGone<O>(Option<UnboundedSender<Message<O>>>);

impl<O> Drop for IoRuntimeGone<O> {
    fn drop(&mut self) {
        if let Some(messages) = self.0.take() {
            // An error means that the consumer is gone.
            let _ = messages.send(Message::Lost(CloseReason::IoRuntimeGone.into()));
        }
    }
}

/// The pump itself tells the consumer how it ends, but for the end of the I/O runtime.
pub(super) fn in_turns<P, O>(
    level: Level,
    pump: P,
    messages: UnboundedSender<Message<O>>,
) -> impl Future<Output = ()> + Send
where
    P: Future<Output = ()> + Send + 'static,
    O: Send,
{
    let turns = Turns {
        gone: IoRuntimeGone(Some(messages)),
        next: Some(DropOnLane::new(&level, Box::pin(pump))),
        turn: None,
    };
    async move {
        let mut turns = turns;
        let wakeups = Arc::new(Wakeups::default());
        wakeups.0.notify_one();
        while turns.next.is_some() {
            wakeups.0.notified().await;
            let Ok(permit) = Admit::new(level.clone()).await else {
                break;
            };
            let Some(pump) = turns.next.take() else {
                break;
            };
            let turn = turn(level.clone(), pump, wakeups.clone());
            turns.next = turns.turn.insert(permit.spawn(turn)).await.ok().flatten();
        }
        turns.gone.0 = None;
    }
}

/// Polls the pump until it waits. Returns it, unless it has ended.
fn turn<P>(
    level: Level,
    pump: Parked<P>,
    wakeups: Arc<Wakeups>,
) -> impl Future<Output = Option<Parked<P>>> + Send
where
    P: Future<Output = ()> + Send + 'static,
{
    // From here on the job holds the pump, and drops it where it runs.
    let mut pump = pump.into_inner();
    async move {
        let waker = Waker::from(wakeups.clone());
        while pump
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
        {
            if !wakeups.take() {
                return Some(DropOnLane::new(&level, pump));
            }
            yield_now().await;
        }
        None
    }
}
