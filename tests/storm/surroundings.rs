//! What a unit knows of its round: the lane, what is alive, and which errors fit.

use std::any::Any;
use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::SeqCst};
use std::task::Poll;

use futures::stream::{self, Stream};
use twolane::io::BridgeError;
use twolane::{Handle, JoinError, JoinErrorKind, Priority};

use crate::dice::Dice;
use crate::ledger::Ledger;
use crate::watchdog::{self, Payload, Planned};

pub(crate) const PRIORITIES: [Priority; 3] = [Priority::High, Priority::Normal, Priority::Low];

/// What is alive of all values of a round.
#[derive(Clone, Default)]
pub(crate) struct Live(pub(crate) Arc<AtomicIsize>);

pub(crate) struct Item {
    pub(crate) value: u64,
    live: Live,
}

impl Drop for Item {
    fn drop(&mut self) {
        let before = self.live.0.fetch_sub(1, SeqCst);
        assert!(before > 0, "more was dropped than made");
    }
}

impl Clone for Item {
    fn clone(&self) -> Self {
        self.live.item(self.value)
    }
}

impl Live {
    pub(crate) fn item(&self, value: u64) -> Item {
        self.0.fetch_add(1, SeqCst);
        let live = self.clone();
        Item { value, live }
    }

    /// So many inputs of a unit; its source may panic at one of them.
    pub(crate) fn inputs(
        &self,
        inputs: u64,
        unit: u64,
        panics_at: Option<u64>,
    ) -> impl Iterator<Item = Item> + Send + use<> {
        let live = self.clone();
        (0..inputs).map(move |input| live.input(input, unit, panics_at))
    }

    pub(crate) fn input(&self, input: u64, unit: u64, panics_at: Option<u64>) -> Item {
        if panics_at == Some(input) {
            panic_any(Planned(unit));
        }
        self.item(input)
    }
}

/// How many items a reader takes before it drops the rest.
pub(crate) fn items_taken(dice: &mut Dice) -> usize {
    match dice.once_in(4) {
        true => dice.below(60) as usize,
        false => usize::MAX,
    }
}

/// The inputs, with a pause at each so many polls.
pub(crate) fn paused<I>(mut inputs: I, pending_each: u64) -> impl Stream<Item = Item> + Send
where
    I: Iterator<Item = Item> + Send,
{
    let mut polls = 0;
    stream::poll_fn(move |cx| {
        polls += 1;
        if polls % pending_each == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(inputs.next())
    })
}

pub(crate) struct Round {
    pub(crate) cpu: Handle,
    pub(crate) limits: [Option<usize>; 3],
    /// How many jobs a key may have.
    pub(crate) jobs_of_key: u16,
    pub(crate) ledger: Ledger,
    /// Set before the lane is shut down.
    pub(crate) closing: AtomicBool,
    /// After that call.
    pub(crate) is_closed: AtomicBool,
    /// All of the lane's threads have ended.
    pub(crate) is_over: AtomicBool,
    /// A job without a record was submitted, which ends the lane.
    pub(crate) has_ender: AtomicBool,
    /// Set before the I/O lane's runtime is shut down.
    pub(crate) io_ends: AtomicBool,
    pub(crate) live: Live,
}

/// What was done to a job that may be its end, besides a shutdown.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Done {
    pub(crate) panics: Option<u64>,
    pub(crate) cancelled: bool,
    pub(crate) needs_permit: bool,
    pub(crate) has_key: bool,
    pub(crate) has_deadline: bool,
    pub(crate) payload: Payload,
    /// It does not end without a panic by itself.
    pub(crate) must_panic: bool,
    /// Tokio's timer panics in a runtime that goes.
    pub(crate) sleeps: bool,
}

impl Done {
    pub(crate) fn panics(id: u64) -> Self {
        Self {
            panics: Some(id),
            ..Self::default()
        }
    }

    pub(crate) fn needs_permit(needs_permit: bool) -> Self {
        Self {
            needs_permit,
            ..Self::default()
        }
    }
}

impl Round {
    /// Mostly the priority that is started with the lane.
    pub(crate) fn level(&self, dice: &mut Dice) -> (usize, Handle) {
        let level = dice.one_of(&[0, 1, 1, 1, 2]);
        (level, self.cpu.with_priority(PRIORITIES[level]))
    }

    /// And whether there is a limit.
    pub(crate) fn at(&self, dice: &mut Dice) -> (Handle, bool) {
        let (level, cpu) = self.level(dice);
        (cpu, self.limits[level].is_some())
    }

    /// The end of the I/O runtime closes the lane.
    pub(crate) fn may_end(&self) -> bool {
        self.closing.load(SeqCst) || self.io_ends.load(SeqCst)
    }

    /// Fails if nothing that was done explains the error.
    pub(crate) fn check(&self, error: JoinError, done: Done) {
        let fits = (error.kind() == JoinErrorKind::Shutdown && self.may_end())
            || (error.kind() == JoinErrorKind::IoRuntimeGone && self.io_ends.load(SeqCst))
            || (error.is_cancelled() && done.cancelled)
            || (error.kind() == JoinErrorKind::QueueFull && done.needs_permit)
            || (error.kind() == JoinErrorKind::KeyFull && done.has_key)
            || (error.kind() == JoinErrorKind::Expired && done.has_deadline);
        if fits {
            return;
        }
        let text = error.to_string();
        if error.is_panic() && done.panics.is_some() && done.payload == Payload::Explosive {
            // A payload that is taken out would explode here. In the error it does not.
            return;
        }
        let payload = error.try_into_panic().ok();
        let payload = payload.as_deref().map(|payload| payload as &dyn Any);
        if done.sleeps && self.may_end() && payload.is_some_and(watchdog::is_of_a_dying_runtime) {
            return;
        }
        let planned = payload.and_then(watchdog::planned);
        let fits = planned.is_some() && planned == done.panics;
        assert!(fits, "{text}: {done:?}");
    }

    /// The same for a bridge.
    pub(crate) fn check_bridge(&self, error: BridgeError, done: Done) {
        let text = error.to_string();
        let full = error.is_queue_full();
        if error.is_panic() {
            let planned = watchdog::planned(&*error.try_into_panic().unwrap());
            assert!(
                planned.is_some() && planned == done.panics,
                "{text}: {done:?}"
            );
        } else {
            let fits = self.may_end() || (full && done.needs_permit);
            assert!(fits, "{text}: {done:?}");
        }
    }
}

/// Gives way a few times.
pub(crate) async fn wait_a_little(dice: &mut Dice) {
    let times = match dice.below(4) {
        0 => dice.below(50),
        1 => dice.below(5),
        _ => 0,
    };
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}
