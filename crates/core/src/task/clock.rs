//! [`Clock`]: a clock that costs one load, and stops while no thread reads it.
//!
//! Reading the time is too expensive for an inner loop. So a thread, the ticker (`ticker.rs`),
//! counts ticks in an atomic word. The lowest bits of the word are the *demand*:
//!
//! - A caller makes sure that the word says [`ASKED`], and writes it only if it does not.
//! - At each tick the ticker resets it to [`NOT_ASKED`].
//! - If no caller has set it again for some ticks, the ticker sets [`PARKED`] and parks. The next
//!   caller finds that, and unparks the ticker.
//!
//! **Obligations.** [liveness] A caller that asks sees the clock go on: if the ticker parks beside
//! it, either the ticker finds the demand, or the caller finds the ticker parked and unparks it.
//! [safety] Ticks are not lost: each raises the count by one, whatever the demand does meanwhile.
//!
//! Orderings: the demand is changed by `SeqCst` read-modify-writes of one word, so the later one of
//! a ticker that parks and a caller that asks sees the earlier one. A load that decides nothing but
//! whether to write is relaxed: the ticks order no other memory.

use super::ClockWord;
use crate::sync::{Ordering::Relaxed, Ordering::SeqCst};

/// The word: the tick count, and in the lowest bits the demand. They share one word, since each
/// call has to read both.
///
/// (One in a `static` is made of its field: loom's atomics have no constant.)
pub(crate) struct Clock(pub(crate) ClockWord);

const DEMAND: u32 = 3;
const PARKED: u32 = 0;
pub(crate) const NOT_ASKED: u32 = 1;
const ASKED: u32 = 2;
const ONE_TICK: u32 = 4;

impl Clock {
    /// A point in time, for [`have_passed`](Self::have_passed).
    #[inline]
    pub(crate) fn now(&self) -> u32 {
        self.0.load(Relaxed) & !DEMAND
    }

    /// Whether so many ticks have passed since `began`.
    #[inline]
    pub(crate) fn have_passed(&self, began: u32, ticks: u32) -> bool {
        // The demand bits add less than one tick.
        self.0.load(Relaxed).wrapping_sub(began) >= ticks * ONE_TICK
    }

    /// Whether a caller has to [`ask`](Self::ask).
    #[inline]
    pub(crate) fn is_unasked(&self) -> bool {
        self.0.load(Relaxed) & DEMAND != ASKED
    }

    /// Asks for ticks. True if the caller has to unpark the ticker.
    pub(crate) fn ask(&self) -> bool {
        self.set_demand(|_| true, ASKED) == Some(PARKED)
    }

    /// The ticker calls it before a tick. Whether a caller has asked since the last one.
    pub(crate) fn take_demand(&self) -> bool {
        self.set_demand(|demand| demand == ASKED, NOT_ASKED)
            .is_some()
    }

    /// The ticker calls it. True if it may park until [`is_parked`](Self::is_parked) is false.
    pub(crate) fn try_park(&self) -> bool {
        self.set_demand(|demand| demand == NOT_ASKED, PARKED)
            .is_some()
    }

    pub(crate) fn is_parked(&self) -> bool {
        self.0.load(SeqCst) & DEMAND == PARKED
    }

    pub(crate) fn tick(&self) {
        self.0.fetch_add(ONE_TICK, Relaxed);
    }

    /// Sets the demand, if it is one of these, and returns it as it was.
    fn set_demand(&self, from: impl Fn(u32) -> bool, to: u32) -> Option<u32> {
        let set = |clock| from(clock & DEMAND).then_some((clock & !DEMAND) | to);
        let before = self.0.fetch_update(SeqCst, SeqCst, set);
        before.ok().map(|clock| clock & DEMAND)
    }
}
