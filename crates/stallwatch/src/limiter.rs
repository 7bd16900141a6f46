//! How often stalls are logged: each culprit once in ten seconds, and five times a minute
//! in all.

use std::collections::HashMap;
use std::time::{Duration, Instant};

const PER_CULPRIT: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_secs(60);
const A_MINUTE: usize = 5;

#[derive(Debug, Default)]
pub(crate) struct Limiter {
    /// By the culprit's name, or what is known of it instead.
    last: HashMap<String, Instant>,
    /// Those of the last minute.
    lately: Vec<Instant>,
    suppressed: u64,
}

impl Limiter {
    /// Returns how many were suppressed before this one, if this one may be logged.
    pub(crate) fn allow(&mut self, culprit: String, now: Instant) -> Option<u64> {
        let is_recent = |then: &Instant, span| now.duration_since(*then) < span;
        self.lately.retain(|then| is_recent(then, MINUTE));
        let last = self.last.get(&culprit);
        if last.is_some_and(|then| is_recent(then, PER_CULPRIT)) || self.lately.len() >= A_MINUTE {
            self.suppressed += 1;
            return None;
        }
        self.last.insert(culprit, now);
        self.lately.push(now);
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
        let mut reserve = |name: &str, now| limiter.allow(name.to_owned(), now);
        assert_eq!(reserve("one", at(0)), Some(0));
        assert_eq!(reserve("one", at(9)), None);
        assert_eq!(reserve("two", at(9)), Some(1));
        assert_eq!(reserve("one", at(10)), Some(0));
        assert_eq!(reserve("blocks in read", at(20)), Some(0));
        assert_eq!(reserve("one", at(30)), Some(0));
        assert_eq!(reserve("one", at(50)), None);
        assert_eq!(reserve("two", at(59)), None);
        assert_eq!(reserve("two", at(60)), Some(2));
    }
}
