//! [`Order`]: whose job is next. No thread, no clock, no lock: `turn.rs` has these.
//!
//! Time is virtual here: what a key has used over its weight. Each key with a queue has a *place*:
//! what it has used, and is charged for the jobs that have their turn now. The least place is next.
//! Places move by what jobs take alone, so keys that always have jobs queued share by their weights
//! (start-time fair queueing: the shares of deficit round robin, without rounds over keys in debt).
//!
//! - A key is charged the mean of all jobs while a job of it has its turn. When the job ends, the key
//!   has used what it took. What was only charged moves no other key.
//! - A key whose queue was empty starts at the virtual time of now, or at its own if that is later:
//!   it has no credit for its absence, and keeps its debt. A job's end sets now: to what its key has
//!   used, but hardly beyond what the next key has. If nobody waits, now passes all: debts end.
//! - A key without a queue is known until another one needs its room: first the one that owes least.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use super::error::FairError;

/// The virtual time of a nanosecond at weight 1. At the largest weight it is not zero yet.
const RATE: u128 = 1 << 40;

/// How far now goes beyond those that wait: 1 ms. So new keys without end delay a key by about as
/// many jobs as it owes milliseconds, and a key that comes is hardly behind a flood.
const STEP: u128 = 1_000_000 * RATE;

pub(super) struct Order<K, T> {
    pub(super) keys: HashMap<K, (VecDeque<T>, Usage)>,
    /// Those with a queue, by place; then those without.
    places: BTreeMap<Place, K>,
    now: u128,
    last: u64,
    /// What a job takes on average, in nanoseconds.
    mean: u128,
    free_turns: usize,
    pub(super) max_queued: usize,
    pub(super) max_keys: usize,
}

/// Whether the queue is empty, the virtual time, and a number, which no other key has.
type Place = (bool, u128, u64);

#[derive(Default)]
pub(super) struct Usage {
    pub(super) place: Place,
    /// In virtual time, and so is what it is charged for the jobs that have their turn.
    used: u128,
    charged: u128,
    /// The virtual time of a nanosecond.
    rate: u128,
    /// Nanoseconds.
    pub(super) cpu_time: u128,
    /// Cloned by each of its futures that has begun, until it is gone.
    pub(super) begun: Arc<()>,
}

impl<K: Hash + Eq + Clone, T> Order<K, T> {
    pub(super) fn new(free_turns: usize) -> Self {
        Self {
            keys: HashMap::new(),
            places: BTreeMap::new(),
            now: 0,
            last: 0,
            mean: 0,
            free_turns,
            max_queued: 256,
            max_keys: 10_000,
        }
    }

    /// Whether a new job of this key may come. Makes room for a new key.
    pub(super) fn admit(&mut self, key: &K, is_future: bool) -> Result<(), FairError> {
        let known = self.keys.get(key).map(|(queue, usage)| {
            let begun = is_future.then(|| Arc::strong_count(&usage.begun) - 1);
            queue.len().max(begun.unwrap_or(0))
        });
        if known >= Some(self.max_queued) {
            return Err(FairError::KeyFull(self.max_queued));
        }
        while known.is_none() && self.keys.len() >= self.max_keys {
            let idlest = self.places.range((true, 0, 0)..).next();
            let (&place, _) = idlest.ok_or(FairError::KeysFull(self.max_keys))?;
            let _ = self.places.remove(&place).map(|key| self.keys.remove(&key));
        }
        Ok(())
    }

    /// Queues a job.
    pub(super) fn push(&mut self, key: &K, weight: u32, ticket: T) {
        let (queue, usage) = self.keys.entry(key.clone()).or_default();
        usage.rate = RATE / u128::from(weight);
        queue.push_back(ticket);
        if queue.len() == 1 {
            usage.used = usage.used.max(self.now);
            self.line_up(key);
        }
    }

    /// The job that is next, if there is a free turn: its key, its charge, and what was pushed.
    pub(super) fn next(&mut self) -> Option<(K, u128, T)> {
        let first = self.places.first_key_value();
        let (_, key) = first.filter(|_| self.free_turns > 0)?;
        let (key, (queue, usage)) = (key.clone(), self.keys.get_mut(key)?);
        let ticket = queue.pop_front()?;
        self.free_turns -= 1;
        let charge = self.mean * usage.rate;
        usage.charged += charge;
        self.line_up(&key);
        Some((key, charge, ticket))
    }

    /// A job gives its turn back. It was charged so much, and took so many nanoseconds: none if it
    /// did not run.
    pub(super) fn end(&mut self, key: &K, charge: u128, took: u128) {
        self.free_turns += 1;
        // An eighth is the last one's, if it ran.
        self.mean = self.mean - self.mean / 8 * took.min(1) + took / 8;
        // Else it was forgotten meanwhile.
        if let Some((_, usage)) = self.keys.get_mut(key) {
            usage.charged = usage.charged.saturating_sub(charge);
            usage.used += took * usage.rate;
            usage.cpu_time += took;
            let used = usage.used;
            self.line_up(key);
            let now = match self.places.first_key_value() {
                Some(((false, ..), first)) => used.min(self.keys[first].1.used + STEP),
                // Nobody waits.
                _ => self
                    .places
                    .last_key_value()
                    .map_or(used, |(place, _)| place.1),
            };
            self.now = self.now.max(now);
        }
    }

    /// Gives a key its place, after its queue or what it used has changed.
    fn line_up(&mut self, key: &K) {
        self.last += 1;
        if let Some((queue, usage)) = self.keys.get_mut(key) {
            self.places.remove(&usage.place);
            let place = usage.used + usage.charged;
            usage.place = (queue.is_empty(), place, self.last);
            self.places.insert(usage.place, key.clone());
        }
    }
}
