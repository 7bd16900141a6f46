//! How often stalls are logged: each culprit once in ten seconds, and five times a minute
//! in all.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::name::Name;
use crate::stall::Cause;

const PER_CULPRIT: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_secs(60);
const A_MINUTE: usize = 5;

/// The culprit. Or, if it has no name, what is known of it instead.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Named(Name),
    Unnamed(Cause),
}

#[derive(Debug, Default)]
pub(crate) struct Limiter {
    last: HashMap<Key, Instant>,
    lately: VecDeque<Instant>,
    suppressed: u64,
}

impl Limiter {
    /// Returns how many were suppressed before this one, if this one may be logged.
    pub(crate) fn admit(&mut self, culprit: Key, now: Instant) -> Option<u64> {
        let is_recent = |then: &Instant, span| now.duration_since(*then) < span;
        while self
            .lately
            .front()
            .is_some_and(|then| !is_recent(then, MINUTE))
        {
            self.lately.pop_front();
        }
        let last = self.last.get(&culprit);
        if last.is_some_and(|then| is_recent(then, PER_CULPRIT)) || self.lately.len() >= A_MINUTE {
            self.suppressed += 1;
            return None;
        }
        self.last.insert(culprit, now);
        self.lately.push_back(now);
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_culprit_is_logged_once_in_ten_seconds_and_five_a_minute_are() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut limiter = Limiter::default();
        let named = |name| Key::Named(Name::named(name));
        let (one, two) = (|| named("one"), || named("two"));
        assert_eq!(limiter.admit(one(), at(0)), Some(0));
        assert_eq!(limiter.admit(one(), at(9)), None);
        assert_eq!(limiter.admit(two(), at(9)), Some(1));
        assert_eq!(limiter.admit(one(), at(10)), Some(0));
        assert_eq!(
            limiter.admit(Key::Unnamed(Cause::Computes), at(20)),
            Some(0)
        );
        assert_eq!(limiter.admit(one(), at(30)), Some(0));
        assert_eq!(limiter.admit(one(), at(50)), None);
        assert_eq!(limiter.admit(two(), at(59)), None);
        assert_eq!(limiter.admit(two(), at(60)), Some(2));
    }
}
