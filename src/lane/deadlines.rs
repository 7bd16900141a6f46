//! What is to be ended at a time: jobs that nobody wants after it, and those who
//! wait for a place until then.
//!
//! Whoever has a deadline leaves it here; the warden, which has the lane's clock,
//! takes it from here, keeps it in order and ends what is due. It is woken for a
//! deadline only if it would otherwise sleep beyond it: of jobs that each have the
//! same time from their submission, for one at a time. Nobody falls between:
//!
//! - Whoever brings a deadline leaves it, then looks when the warden will wake.
//! - The warden says when it will wake, then looks for what was left.
//!
//! Each has a `SeqCst` fence in between, so one of the two sees the other. (Loom
//! model in `tests/loom`.)
//!
//! Times are in milliseconds, rounded up: the warden comes that much late, and
//! at most a thousand times a second. What starts a job looks at the deadline
//! itself ([`Extras`](crate::job::Extras)).
//!
//! Most jobs end long before their deadline, and what is left here keeps their
//! memory. So the warden is woken for each [`MANY`] as well, and throws out those
//! that have ended.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Arc, Weak};

use crate::sync::Ordering::SeqCst;
use crate::sync::{AtomicU64, AtomicUsize, Queue, fence};

/// What can be ended by a deadline.
pub(crate) trait Expire: Send + Sync {
    fn expire(self: Arc<Self>);
}

/// In milliseconds of the lane's clock.
pub(crate) type Millis = u64;
const NEVER: Millis = Millis::MAX;
const MANY: usize = 1024;

pub(crate) struct Deadlines {
    left: Queue<Entry>,
    /// Since the beginning.
    count: AtomicUsize,
    /// When the warden looks next.
    wakes_at: AtomicU64,
}

struct Entry {
    at: Millis,
    whose: Weak<dyn Expire>,
}

impl Deadlines {
    pub(crate) fn new() -> Self {
        Self {
            left: Queue::new(),
            count: AtomicUsize::new(0),
            wakes_at: AtomicU64::new(NEVER),
        }
    }

    /// True if the warden has to be woken for it.
    #[must_use]
    pub(crate) fn leave(&self, at: Millis, whose: Weak<dyn Expire>) -> bool {
        self.left.push(Entry { at, whose });
        fence(SeqCst);
        let is_next = at < self.wakes_at.fetch_min(at, SeqCst);
        let before = self.count.fetch_add(1, SeqCst);
        is_next || before % MANY == MANY - 1
    }
}

/// The warden's own.
pub(crate) struct Schedule {
    heap: BinaryHeap<Entry>,
    /// How many there were when those that have ended were last thrown out.
    kept: usize,
}

impl Schedule {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            kept: 0,
        }
    }

    /// What is due now; and when to look again, if ever.
    pub(crate) fn look(
        &mut self,
        deadlines: &Deadlines,
        now: Millis,
    ) -> (Vec<Weak<dyn Expire>>, Option<Millis>) {
        let mut due = Vec::new();
        loop {
            while let Some(entry) = deadlines.left.pop() {
                self.heap.push(entry);
            }
            while self.heap.peek().is_some_and(|first| first.at <= now) {
                due.extend(self.heap.pop().map(|first| first.whose));
            }
            self.throw_out_ended();
            let next = self.heap.peek().map_or(NEVER, |first| first.at);
            deadlines.wakes_at.store(next, SeqCst);
            fence(SeqCst);
            if deadlines.left.is_empty() {
                return (due, (next != NEVER).then_some(next));
            }
        }
    }

    /// How many deadlines there are, looked at or not.
    #[cfg(test)]
    pub(crate) fn all(&self, deadlines: &Deadlines) -> usize {
        self.heap.len() + deadlines.left.len()
    }

    fn throw_out_ended(&mut self) {
        if self.heap.len() > MANY + 2 * self.kept {
            self.heap.retain(|entry| entry.whose.strong_count() > 0);
            self.kept = self.heap.len();
        }
    }
}

/// The heap's greatest is the earliest.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.cmp(&self.at)
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Entry {}
