//! [`Order`]: which key is next. No thread, no clock, no lock: `lane/keyed.rs` has these.
//!
//! Time is virtual here: what a key has used, over its weight. A key with a queue has a *place*:
//! what it has used, and what it is charged for its jobs that run now. The least place is next.
//! Places move by what jobs take and by nothing else, so keys that always have jobs queued share by
//! their weights. (It is start-time fair queueing: the shares of deficit round robin, without rounds
//! over keys in debt.)
//!
//! For example, `a` and `b` have weight 1 and jobs queued, and both have used nothing. A job of `a`
//! takes 100 ms. Then `b` is next until its jobs have taken 100 ms, be these a thousand or one.
//! With weight 2, `b` is next until they have taken 200 ms.
//!
//! - A key is charged the mean of all jobs for each job of it that runs. When the job ends, the key
//!   has used what it took. What was only charged moves no other key.
//! - A key whose queue was empty starts at the virtual time of now, or at its own if that is later.
//!   So its absence earns no credit, and its debt stays. The end of a job sets now: to what its key
//!   has used, but hardly beyond what the next key has. If no key has a queue, now passes all of
//!   them: debts end.
//! - A key without a queue is known until another one needs its room. The one that owes least goes
//!   first.

mod queue;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use self::queue::KeyQueue;
use super::Shares;

/// The virtual time of a nanosecond at weight 1. At the largest weight it is not zero yet.
const RATE: u128 = 1 << 40;
/// How far now goes beyond those that wait: 1 ms for each job that ends. So new keys without end
/// delay a key that owes 3 s by about 3,000 of their jobs, and a key that comes is hardly behind a
/// flood.
const STEP: u128 = 1_000_000 * RATE;
/// How many keys are known. (Those with jobs are bounded where these are admitted.)
const MOST_KEYS: usize = 10_000;

pub(crate) struct Order<K, T> {
    keys: BTreeMap<K, (KeyQueue<T>, Usage)>,
    places: Places<K>,
    now: u128,
    /// What a job takes on average, in nanoseconds.
    mean: u128,
    /// Of a new key.
    shares: Shares,
    most_keys: usize,
}

/// The keys with a queue, by place; then those without.
struct Places<K> {
    by_place: BTreeMap<Place, K>,
    last: u64,
}

/// Whether the queue is empty, the virtual time, and a number, which no other key has.
type Place = (bool, u128, u64);

#[derive(Default)]
struct Usage {
    place: Place,
    /// In virtual time, and so is what it is charged for the jobs that run.
    used: u128,
    charged: u128,
    /// The virtual time of a nanosecond.
    rate: u128,
    computed: Duration,
}

/// The turn of a key: one of its jobs runs.
pub(crate) struct Turn<K> {
    pub(crate) key: K,
    charge: u128,
}

impl<K: Ord + Clone, T> Order<K, T> {
    /// `shares`: how short jobs and others share what a key gets, at first.
    pub(crate) fn new(shares: Shares) -> Self {
        Self {
            keys: BTreeMap::new(),
            places: Places {
                by_place: BTreeMap::new(),
                last: 0,
            },
            now: 0,
            mean: 0,
            shares,
            most_keys: MOST_KEYS,
        }
    }

    /// Queues a job.
    pub(crate) fn push(&mut self, key: &K, weight: u16, job: T, is_short: bool) {
        while self.keys.len() >= self.most_keys && !self.keys.contains_key(key) {
            if !self.forget_one() {
                break;
            }
        }
        let new = || (KeyQueue::new(self.shares.anew()), Usage::default());
        let (queue, usage) = self.keys.entry(key.clone()).or_insert_with(new);
        usage.rate = RATE / u128::from(weight);
        queue.push(job, is_short);
        if queue.len() == 1 {
            usage.used = usage.used.max(self.now);
            self.places.line_up(key, queue, usage);
        }
    }

    /// Whether there was one without a queue.
    fn forget_one(&mut self) -> bool {
        let places = &mut self.places.by_place;
        let idlest = places.range((true, 0, 0)..).next();
        let key = idlest.map(|(place, _)| *place);
        let key = key.and_then(|place| places.remove(&place));
        key.and_then(|key| self.keys.remove(&key)).is_some()
    }

    /// The job that is next, and whether it has the share of its key's short ones.
    pub(crate) fn next(&mut self) -> Option<(T, bool, Turn<K>)> {
        let (_, key) = self.places.by_place.first_key_value()?;
        let (key, (queue, usage)) = (key.clone(), self.keys.get_mut(key)?);
        let (job, is_short) = queue.pop()?;
        let charge = self.mean * usage.rate;
        usage.charged += charge;
        self.places.line_up(&key, queue, usage);
        Some((job, is_short, Turn { key, charge }))
    }

    /// A job has ended, and computed for so long: not at all if it did not run. `is_short`: whether it
    /// had the share of its key's short ones.
    pub(crate) fn end(&mut self, turn: &Turn<K>, took: Duration, is_short: bool) {
        let nanos = took.as_nanos();
        // An eighth is the last one's, if it ran.
        self.mean = self.mean - self.mean / 8 * nanos.min(1) + nanos / 8;
        let Some((queue, usage)) = self.keys.get_mut(&turn.key) else {
            // It was forgotten meanwhile.
            return;
        };
        queue.shares().add(is_short, took);
        usage.charged = usage.charged.saturating_sub(turn.charge);
        usage.used += nanos * usage.rate;
        usage.computed += took;
        let used = usage.used;
        self.places.line_up(&turn.key, queue, usage);
        let now = match self.places.by_place.first_key_value() {
            Some(((false, ..), first)) => used.min(self.keys[first].1.used + STEP),
            // No key has a queue.
            _ => self
                .places
                .by_place
                .last_key_value()
                .map_or(used, |(place, _)| place.1),
        };
        self.now = self.now.max(now);
    }

    /// Whether a key without a queue has had more than it is due now.
    pub(crate) fn has_debtor(&self) -> bool {
        let last = self.places.by_place.last_key_value();
        last.is_some_and(|((is_idle, place, _), _)| *is_idle && *place > self.now)
    }

    pub(crate) fn queued(&self, key: &K) -> usize {
        self.keys.get(key).map_or(0, |(queue, _)| queue.len())
    }

    /// All keys that are known: how many jobs they have queued, and for how long those computed that
    /// have ended.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&K, usize, Duration)> {
        let all = self.keys.iter();
        all.map(|(key, (queue, usage))| (key, queue.len(), usage.computed))
    }
}

impl<K: Clone> Places<K> {
    /// Gives a key its place, after its queue or what it used has changed.
    fn line_up<T>(&mut self, key: &K, queue: &KeyQueue<T>, usage: &mut Usage) {
        self.last += 1;
        self.by_place.remove(&usage.place);
        usage.place = (queue.is_empty(), usage.used + usage.charged, self.last);
        self.by_place.insert(usage.place, key.clone());
    }
}
