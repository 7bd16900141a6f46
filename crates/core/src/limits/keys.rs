//! [`Keys`]: how many jobs of each key a priority has, and what they count in time.
//!
//! It is a table of *slots*, which a key finds by its hash. A submitter takes a slot that its key has
//! already, else one that no key has: of those from the key's place on, up to [`PROBES`]. A job holds
//! its slot until it has ended. No thread waits for another one: the submitter may be an I/O thread,
//! and the job ends on a thread that gives way.
//!
//! Submitters of one key that come at once, beside jobs of others that end, may take a slot each, and
//! two keys whose hashes agree in 48 bits have one. Then the key's bound is so many times as high, or
//! the keys share it.
//!
//! **Time.** Jobs with a limit in time wait for those of their key, and their key has its part of
//! the threads: its weight over the weights of all keys that have jobs charged. So a key may fill
//! that part of the room. For example, with a room of 900 ms, and jobs of three keys and plain ones
//! queued, the first key may fill a quarter, 225 ms.

use std::iter;

use once_cell::race::OnceBox;

use crate::error::{Full, JoinError};
use crate::key::Key;
use crate::sync::{AtomicU64, Ordering::SeqCst};

/// (A model looks at each of them.)
const SLOTS: usize = if cfg!(test) { 64 } else { 1 << 14 };
const PROBES: usize = 32;
/// In [`Entry::jobs`], the low bits: how many there are. The rest is of the key's hash.
const JOBS: u64 = (1 << 16) - 1;
/// In [`Entry::time`], the low bits: what is charged, in microseconds. The rest is the key's weight.
const MICROS: u64 = (1 << 48) - 1;

#[derive(Default)]
pub(crate) struct Keys {
    slots: OnceBox<Vec<Entry>>,
    /// Of the keys that have time charged.
    weights: AtomicU64,
}

/// Where a key is in the table, and its weight.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    pub(super) at: u16,
    pub(super) weight: u16,
}

#[derive(Default)]
struct Entry {
    jobs: AtomicU64,
    time: AtomicU64,
}

impl Keys {
    fn slots(&self) -> &[Entry] {
        let all = || iter::repeat_with(Entry::default).take(SLOTS);
        self.slots.get_or_init(|| Box::new(all().collect()))
    }

    /// Counts a job of the key, of which there may be so many. Returns where.
    pub(super) fn take(&self, key: &Key, most: u16) -> Result<u16, JoinError> {
        let (slots, hash) = (self.slots(), key.name.hash);
        let tag = hash & !JOBS;
        loop {
            let mut found = None;
            for nth in 0..PROBES {
                let at = (hash as usize + nth) % SLOTS;
                let word = slots[at].jobs.load(SeqCst);
                if word & JOBS == 0 {
                    found = found.or(Some((at, word, tag | 1)));
                } else if word & !JOBS == tag {
                    found = Some((at, word, word + 1));
                    break;
                }
            }
            let (at, now, then) = found.ok_or(JoinError::full(Full::Keys))?;
            if now & JOBS >= most.into() {
                return Err(JoinError::full(Full::Key(most)));
            }
            let jobs = &slots[at].jobs;
            if jobs.compare_exchange(now, then, SeqCst, SeqCst).is_ok() {
                return Ok(at as u16);
            }
        }
    }

    /// Whether there was a job of a key.
    pub(super) fn are_used(&self) -> bool {
        self.slots.get().is_some()
    }

    fn at(&self, at: u16) -> &Entry {
        &self.slots()[usize::from(at)]
    }

    pub(super) fn give_back(&self, at: u16) {
        self.at(at).jobs.fetch_sub(1, SeqCst);
    }

    pub(super) fn charge(&self, slot: Slot, micros: u64) {
        let weight = u64::from(slot.weight);
        let add = |word| match word & MICROS {
            0 => Some(weight << 48 | micros),
            _ => Some(word + micros),
        };
        let before = self.at(slot.at).time.fetch_update(SeqCst, SeqCst, add);
        if before.is_ok_and(|word| word & MICROS == 0) {
            self.weights.fetch_add(weight, SeqCst);
        }
    }

    pub(super) fn discharge(&self, slot: Slot, micros: u64) {
        let before = self.at(slot.at).time.fetch_sub(micros, SeqCst);
        if before & MICROS == micros {
            self.weights.fetch_sub(before >> 48, SeqCst);
        }
    }

    /// Of all keys that have time charged.
    pub(super) fn weights(&self) -> u64 {
        self.weights.load(SeqCst)
    }

    /// What is charged to the key, in microseconds, and the weights of all keys that it shares with.
    pub(super) fn charged(&self, slot: Slot) -> (u64, u64) {
        let word = self.at(slot.at).time.load(SeqCst);
        let others = match word & MICROS {
            0 => self.weights(),
            _ => self.weights().saturating_sub(word >> 48),
        };
        (word & MICROS, others)
    }

    #[cfg(test)]
    #[allow(dead_code, reason = "for the model")]
    pub(crate) fn is_free(&self) -> bool {
        let is_free = |slot: &Entry| {
            slot.jobs.load(SeqCst) & JOBS == 0 && slot.time.load(SeqCst) & MICROS == 0
        };
        let slots = self.slots.get().into_iter().flatten();
        self.weights() == 0 && slots.into_iter().all(is_free)
    }
}
