//! Decides whether a thread is stuck, from what one look after another finds.
//!
//! **Nothing is blamed for what others took.** A poll is stuck if its *own* time is over
//! the threshold: the time for which it computed, and the time for which it waited. That
//! leaves out the time for which the thread was ready and had no core
//! (`/proc/self/task/*/schedstat`): another process had it, or the cgroup was throttled.
//! And what lies between two looks counts as waited only if the second one came in time. If
//! it is late, the watch had no core itself, and neither had, perhaps, the thread that is
//! waited for.
//!
//! What the watch cannot read it does not guess: while the process is out of file descriptors, it
//! begins anew at each look. Where the kernel tells no times, all of the time counts.
//!
//! So a poll may be found late or, on a machine that is full, not at all. What ends before two
//! looks have seen it is judged by `ended.rs`.

use std::time::{Duration, Instant};

use crate::kernel::{self, Doing, Times};
use crate::stall::Cause;

/// From one look to the next.
pub(crate) const PACE: Duration = Duration::from_millis(40);

/// From one look to the next, once two looks have found the same poll.
pub(crate) const CLOSE_PACE: Duration = Duration::from_millis(10);

/// A look that comes later than this after the one before was late.
pub(crate) const LATE: Duration = Duration::from_millis(80);

/// What counts as waited, of the time between two looks.
fn counts(between: Duration) -> Duration {
    match between {
        late if late > LATE => Duration::ZERO,
        in_time => in_time.min(PACE),
    }
}

/// What the kernel tells of the thread.
pub(crate) trait Kernel {
    fn times(&mut self) -> Option<Times>;
    fn doing(&mut self) -> Option<Doing>;
    fn tells_times(&self) -> bool {
        kernel::tells_times()
    }
}

/// What a thread is at, by a number that tells it from all others of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A poll that is watched.
    Poll(u64),
    /// A system call, in code that is not watched or may compute as long as it likes.
    Call(u64),
}

/// What was found of one thread so far.
#[derive(Debug, Default)]
pub(crate) struct Detector {
    spell: Option<Spell>,
    /// What was found last.
    found: Option<What>,
}

/// A thread is at one thing, from one look to the next.
#[derive(Debug)]
struct Spell {
    what: What,
    since: Instant,
    looked: Instant,
    /// The time between the looks, as far as it [`counts`].
    counted: Duration,
    before: Option<Times>,
    doing: Option<Doing>,
}

/// What a thread is stuck in.
#[derive(Debug, PartialEq)]
pub(crate) struct Stuck {
    /// The first look that found it.
    pub(crate) since: Instant,
    /// Its own time.
    pub(crate) own: Duration,
    pub(crate) cause: Cause,
}

impl Detector {
    /// Looks at what the thread is at now. Returns what is stuck, once.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        what: Option<What>,
        threshold: Duration,
        kernel: &mut impl Kernel,
    ) -> Option<Stuck> {
        let Some(what) = what else {
            self.spell = None;
            return None;
        };
        let is_blind = |spell: &Spell| spell.before.is_none() && kernel.tells_times();
        let same = |spell: &&mut Spell| spell.what == what && !is_blind(spell);
        let Some(spell) = self.spell.as_mut().filter(same) else {
            self.spell = Some(Spell {
                what,
                since: now,
                looked: now,
                counted: Duration::ZERO,
                before: kernel.times(),
                doing: kernel.doing(),
            });
            return None;
        };
        spell.counted += counts(now - spell.looked);
        spell.looked = now;
        if self.found == Some(what) || now - spell.since < threshold {
            return None;
        }
        let (own, cause) = spell.own_time(kernel)?;
        if own < threshold {
            return None;
        }
        self.found = Some(what);
        Some(Stuck {
            since: spell.since,
            own,
            cause,
        })
    }

    pub(crate) fn has_found(&self, what: What) -> bool {
        self.found == Some(what)
    }

    /// What the first look at this has found, if it was the last thing that a look saw.
    pub(crate) fn doing(&self, what: What) -> Option<Doing> {
        let spell = self.spell.as_ref().filter(|spell| spell.what == what)?;
        spell.doing
    }

    /// Whether two looks have found the same, and it may turn out to be stuck.
    pub(crate) fn is_suspect(&self) -> bool {
        let spell = self.spell.as_ref();
        spell.is_some_and(|spell| !self.has_found(spell.what) && spell.looked > spell.since)
    }
}

impl Spell {
    fn own_time(&self, kernel: &mut impl Kernel) -> Option<(Duration, Cause)> {
        // First, since the times are then those of a thread that has come to wait: the kernel
        // has counted what it had spent in the queue for a core before.
        let doing = kernel.doing();
        let Some(before) = self.before else {
            // Elsewhere than on Linux.
            return Some((self.counted, Cause::Unknown));
        };
        let now = kernel.times()?;
        let computed = now.on_cpu.saturating_sub(before.on_cpu);
        let queued = now.queued.saturating_sub(before.queued);
        let waited = (self.looked - self.since).saturating_sub(computed + queued);
        let waited = waited.min(self.counted);
        match doing? {
            // What is missing is no wait: it may be in the queue for a core, and the kernel
            // counts that when it gets one.
            Doing::Runs => Some((computed, Cause::Computes)),
            Doing::Waits(_) if computed > waited => Some((computed + waited, Cause::Computes)),
            Doing::Waits(call) => Some((computed + waited, Cause::Blocks(call))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THRESHOLD: Duration = Duration::from_millis(25);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// The thread's times move on by these at each look.
    struct Thread {
        times: Option<Times>,
        on_cpu: Duration,
        queued: Duration,
        doing: Doing,
        tells: bool,
    }

    impl Thread {
        fn that(on_cpu: u64, queued: u64, doing: Doing) -> Self {
            Self {
                times: Some(Times::default()),
                on_cpu: ms(on_cpu),
                queued: ms(queued),
                doing,
                tells: true,
            }
        }

        fn go_on(&mut self) {
            if let Some(times) = &mut self.times {
                times.on_cpu += self.on_cpu;
                times.queued += self.queued;
            }
        }
    }

    impl Kernel for Thread {
        fn times(&mut self) -> Option<Times> {
            self.times
        }

        fn doing(&mut self) -> Option<Doing> {
            Some(self.doing)
        }

        fn tells_times(&self) -> bool {
            self.tells
        }
    }

    /// Looks at the polls of these counts, so many milliseconds apart, and returns what is
    /// found at which look.
    fn found(thread: &mut Thread, apart: u64, counts: &[Option<u64>]) -> Vec<(usize, Stuck)> {
        let begin = Instant::now();
        let mut detector = Detector::default();
        let look = |(n, count): (usize, &Option<u64>)| {
            let now = begin + ms(apart) * n as u32;
            let found = detector.look(now, count.map(What::Poll), THRESHOLD, thread);
            thread.go_on();
            found.map(|stuck| (n, stuck))
        };
        counts.iter().enumerate().filter_map(look).collect()
    }

    #[test]
    fn a_poll_that_computes_is_found_once() {
        let mut thread = Thread::that(10, 0, Doing::Runs);
        let found = found(
            &mut thread,
            10,
            &[None, Some(1), Some(1), Some(1), Some(1), Some(1)],
        );
        let [(4, stuck)] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(stuck.cause, Cause::Computes);
        assert_eq!(stuck.own, ms(30));
    }

    #[test]
    fn a_poll_that_blocks_is_found_with_its_call() {
        let waits = Doing::Waits(Some("read"));
        let found = found(&mut Thread::that(0, 0, waits), 10, &[Some(1); 4]);
        assert_eq!(found[0].1.cause, Cause::Blocks(Some("read")));
    }

    #[test]
    fn many_short_polls_are_not() {
        let mut thread = Thread::that(10, 0, Doing::Runs);
        let counts: Vec<_> = (0..100).map(|n| Some(2 * n + 1)).collect();
        assert_eq!(found(&mut thread, 10, &counts), []);
        let in_pairs: Vec<_> = (0..100).map(|n| Some(n / 2 * 2 + 1)).collect();
        assert_eq!(found(&mut thread, 10, &in_pairs), []);
    }

    /// It had a core for one of ten milliseconds.
    #[test]
    fn a_thread_without_a_core_is_not_blamed_for_what_others_took() {
        let mut thread = Thread::that(1, 9, Doing::Runs);
        let found = found(&mut thread, 10, &[Some(1); 60]);
        let [(25, stuck)] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(stuck.own, ms(25));
    }

    /// The process was stopped for ten seconds, or its cgroup throttled.
    #[test]
    fn a_late_look_does_not_count() {
        let mut thread = Thread::that(1, 0, Doing::Waits(None));
        assert_eq!(found(&mut thread, 10_000, &[Some(1); 20]), []);
    }

    /// The watch itself has a core every 100 ms.
    #[test]
    fn late_looks_find_what_computes() {
        let mut thread = Thread::that(30, 70, Doing::Runs);
        let found = found(&mut thread, 100, &[Some(1); 3]);
        assert_eq!(found[0].1.cause, Cause::Computes);
        assert_eq!(found[0].1.own, ms(30));
    }

    #[test]
    fn without_the_kernel_s_word_the_time_counts() {
        let mut thread = Thread::that(0, 0, Doing::Runs);
        (thread.times, thread.tells) = (None, false);
        let found = found(&mut thread, 10, &[Some(1); 5]);
        assert_eq!(found[0].1.cause, Cause::Unknown);
    }

    /// The process is out of file descriptors.
    #[test]
    fn what_cannot_be_read_is_not_guessed() {
        let mut thread = Thread::that(0, 0, Doing::Runs);
        thread.times = None;
        assert_eq!(found(&mut thread, 10, &[Some(1); 5]), []);
    }
}
