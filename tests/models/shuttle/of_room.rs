//! How much a lane takes on: the rules at the top of `limits/backlog.rs`, and what a key may have.

use std::sync::Arc;
use std::time::Duration;

use shuttle::thread;

use crate::check;
use crate::error::{JoinError, JoinErrorKind};
use crate::key::Key;
use crate::limits::{Charge, Limit, Limits};
use crate::of_limits::{MS, alone, alone_on, fill, job, limits, with_jobs, with_wait};
use crate::pace::clock::{nanos, now};
use crate::pace::{Shares, Took};

/// What a job that is not known to be short is told now.
fn refused(limits: &Arc<Limits>) -> JoinError {
    limits.admit(None, Some((false, None))).err().unwrap()
}

/// A job of the key that takes that long, or nobody knows how long. It is queued.
fn job_of(key: &Key, limits: &Arc<Limits>, time: Option<Duration>) -> Option<Charge> {
    let charge = limits.admit(Some(key), Some((false, time))).ok()?;
    charge.queue(|| time, false);
    Some(charge)
}

/// Queues such jobs until one is refused.
fn fill_of(key: &Key, limits: &Arc<Limits>, time: Option<Duration>) -> Vec<Charge> {
    let jobs = std::iter::from_fn(|| job_of(key, limits, time));
    jobs.collect()
}

#[test]
fn jobs_are_admitted_while_those_before_them_take_no_longer() {
    alone(|| {
        // 180 ms of room: the twelfth finds 165.
        assert_eq!(fill(&limits(2), Some(15 * MS), false).len(), 12);
        let limits = limits(1);
        let _all = fill(&limits, Some(15 * MS), false);
        assert_eq!(refused(&limits).kind(), JoinErrorKind::QueueFull);
        assert_eq!(refused(&limits).retry_after(), Some(100 * MS));
    });
}

#[test]
fn a_few_jobs_are_admitted_of_which_nothing_is_known() {
    alone_on(1, |limits| {
        assert_eq!(fill(limits, None, false).len(), 8);
        // Whatever the jobs of other sites take.
        let tiny: Vec<_> = (0..100)
            .map(|_| job(limits, Some(MS / 1_000), false))
            .collect();
        assert!(tiny.iter().all(Option::is_some));
        assert_eq!(fill(limits, None, false).len(), 8);
    });
}

/// They keep nobody waiting on a thread that idles.
#[test]
fn a_job_is_admitted_while_long_ones_run_on_all_other_threads() {
    alone(|| {
        for threads in [1, 2, 3, 64] {
            let limits = limits(threads);
            let mut all = fill(&limits, Some(3_600_000 * MS), false);
            assert_eq!(all.len(), threads);
            drop(all.pop());
            assert_eq!(fill(&limits, Some(3_600_000 * MS), false).len(), 1);
        }
    });
}

#[test]
fn short_jobs_have_room_of_their_own() {
    alone_on(1, |limits| {
        let _long = fill(limits, Some(40 * MS), false);
        // Four fifths of it.
        assert_eq!(fill(limits, Some(9 * MS), true).len(), 8);
        assert!(limits.admit(None, Some((false, None))).is_err());
    });
}

/// A step of a job, in the share of short jobs or not.
fn run(limits: &Arc<Limits>, key: Option<&Key>, held: Duration, is_short: bool) {
    let charge = limits.admit(key, Some((is_short, None))).unwrap();
    let (ran, computed) = (Duration::ZERO, Duration::ZERO);
    #[rustfmt::skip]
    charge.count_step(&Took { ran, held, computed }, is_short);
}

/// Half more than they used of late, and four fifths at most.
#[test]
fn short_jobs_leave_the_rest_of_the_room_to_the_others() {
    // Of the time of two windows, 200 ms for each thread: none, 40 % in two steps, all; 25 %.
    for (threads, steps, admitted) in [
        (1, &[][..], 13),
        (1, &[20, 60], 6),
        (1, &[150, 150], 3),
        (2, &[100], 17),
    ] {
        alone_on(threads, move |limits| {
            steps
                .iter()
                .for_each(|&time| run(limits, None, time * MS, true));
            run(limits, None, 100 * MS, false);
            run(limits, Some(&Key::from("a")), 100 * MS, true);
            assert_eq!(fill(limits, Some(7 * MS), false).len(), admitted);
        });
    }
}

/// What they used is forgotten by and by.
#[test]
fn the_others_have_all_of_the_room_again_once_no_short_job_comes() {
    alone(|| {
        let window = Duration::from_millis(20);
        let limits = with_wait(window, None, 1);
        let admitted = || fill(&limits, Some(window / 10), false).len();
        // So that a step at the begin of the clock would be forgotten.
        while now() < nanos(2 * window) {}
        loop {
            run(&limits, None, 2 * window, true);
            // Unless this thread had no core for so long.
            if admitted() == 2 {
                break;
            }
        }
        while admitted() < 9 {
            let next = now() + nanos(window / 4);
            while now() < next {}
        }
    });
}

/// Those that come have their turn before the others, of which too many have run.
#[test]
fn short_jobs_that_wait_may_pass_the_others() {
    alone(|| {
        let (ms, wait) = (Duration::from_millis(1), Some(Duration::from_millis(100)));
        let shares = Arc::new(Shares::new(1, wait));
        let limits = Limits::new(Limit { jobs: None, wait }, 1, &shares);
        // Four bursts of 20 ms, in which the others would have a fifth.
        shares.add(false, 1_000 * ms);
        assert_eq!(fill(&limits, Some(10 * ms), false).len(), 9);
        let _short = job(&limits, Some(ms), true);
        assert_eq!(fill(&limits, Some(10 * ms), false).len(), 8);
    });
}

#[test]
fn both_limits_hold() {
    alone(|| {
        let limits = with_jobs(Some(3), 1);
        let three = fill(&limits, Some(MS), false);
        assert_eq!(three.len(), 3);
        assert_eq!(limits.jobs(), Some((3, 3)));
        assert_eq!(refused(&limits).retry_after(), None);
        drop(three);
        assert_eq!(limits.jobs(), Some((3, 0)));
        let one = fill(&limits, Some(500 * MS), false);
        assert_eq!(one.len(), 1);
        assert!(refused(&limits).retry_after().is_some());
    });
}

#[test]
fn a_key_alone_has_all_of_the_room() {
    alone_on(1, |limits| {
        assert!(limits.is_set);
        let a = Key::from("a");
        assert_eq!(fill_of(&a, limits, Some(20 * MS)).len(), 5);
        // An eighth.
        assert_eq!(fill_of(&a, limits, None).len(), 8);
        let _all = fill_of(&a, limits, Some(20 * MS));
        let refused = job_of(&a, limits, None).is_none();
        assert!(refused);
        let error = limits.admit(Some(&a), Some((false, None))).err().unwrap();
        assert_eq!(error.kind(), JoinErrorKind::QueueFull);
    });
}

/// By its weight over those of all keys that have jobs queued; jobs without a key are one more.
#[test]
fn a_key_has_its_part_of_the_room() {
    for (weight, plain, short, admitted) in [
        // Of 900 ms a third, a quarter, and two fifths.
        (1, false, false, 6),
        (1, true, false, 5),
        (1, false, true, 5),
        (1, true, true, 5),
        (2, true, false, 8),
    ] {
        alone_on(10, move |limits| {
            let time = Some(90 * MS);
            let _plain = plain.then(|| job(limits, time, false));
            let _short = short.then(|| job(limits, time, true));
            let _keys = ["b", "c"].map(|key| job_of(&Key::from(key), limits, time));
            let a = Key::from("a").with_weight(weight);
            assert_eq!(fill_of(&a, limits, Some(50 * MS)).len(), admitted);
        });
    }
}

/// Where the room is full, no more than fits; else one job more.
#[test]
fn a_key_has_its_part_where_others_fill_the_room() {
    // How many jobs of 50 ms there are, plain, short, and of another key; those of the key take so
    // long, and so many are admitted, of which 450 ms is its part.
    for (plain, short, other, time, admitted) in [
        (10, 0, 0, 80, 5),
        (0, 10, 0, 80, 5),
        (0, 0, 10, 80, 5),
        (3, 0, 0, 80, 6),
        (0, 3, 0, 80, 6),
        (0, 0, 3, 80, 6),
        (18, 0, 0, 80, 5),
        (18, 0, 0, 75, 6),
        (10, 0, 0, 3_600_000, 5),
    ] {
        alone_on(10, move |limits| {
            let (a, b, each) = (Key::from("a"), Key::from("b"), Some(50 * MS));
            let all = (0..plain).map(|_| job(limits, each, false));
            let all = all.chain((0..short).map(|_| job(limits, each, true)));
            let all = all.chain((0..other).map(|_| job_of(&b, limits, each)));
            let _all = Vec::from_iter(all.map(Option::unwrap));
            assert_eq!(fill_of(&a, limits, Some(time * MS)).len(), admitted);
        });
    }
}

/// Its old weight does not count among the others'.
#[test]
fn a_key_that_comes_again_has_its_part() {
    alone_on(1, |limits| {
        let (a, b) = (Key::from("a"), Key::from("b"));
        drop(job_of(&a, limits, Some(MS)));
        let _all = fill_of(&b, limits, Some(90 * MS));
        let has_room = |time| {
            limits
                .admit(Some(&a), Some((false, Some(time * MS))))
                .is_ok()
        };
        assert!(has_room(45) && !has_room(46));
    });
}

#[test]
fn jobs_without_a_key_have_the_part_of_one_key() {
    for (weights, others, short) in [(&[][..], 9, 8), (&[1], 5, 4), (&[2], 3, 3), (&[1, 1], 3, 3)] {
        alone_on(1, move |limits| {
            let keys = weights.iter().zip(["a", "b"]);
            let keys = keys.map(|(weight, name)| Key::from(name).with_weight(*weight));
            let keys = keys.map(|key| job_of(&key, limits, Some(MS)).unwrap());
            let keys = Vec::from_iter(keys);
            assert_eq!(fill(limits, Some(10 * MS), false).len(), others);
            assert_eq!(fill(limits, Some(9 * MS), true).len(), short);
            // Those that wait have no part.
            keys.iter().for_each(Charge::pause);
            assert_eq!(fill(limits, Some(10 * MS), false).len(), 9);
        });
    }
}

/// Else a lane would count weights for ever that no key has.
#[test]
fn a_key_has_the_weight_of_the_first_of_its_jobs_that_wait() {
    alone_on(1, |limits| {
        let first = job_of(&Key::from("a"), limits, Some(MS));
        let next = job_of(&Key::from("a").with_weight(2), limits, Some(MS));
        assert_eq!(fill(limits, Some(10 * MS), false).len(), 5);
        drop(first);
        assert_eq!(fill(limits, Some(10 * MS), false).len(), 5);
        drop(next);
        assert!(limits.is_free());
        let _next = job_of(&Key::from("a").with_weight(2), limits, Some(MS));
        assert_eq!(fill(limits, Some(10 * MS), false).len(), 3);
    });
}

#[test]
fn a_lane_without_a_limit_refuses_no_job_but_those_of_keys() {
    alone(|| {
        let limits = Limits::new(Limit::default(), 1, &Arc::new(Shares::new(1, None)));
        assert!(!limits.may_refuse());
        drop(job_of(&Key::from("a"), &limits, None));
        assert!(limits.may_refuse());
        assert!(with_jobs(Some(1), 1).may_refuse());
    });
}

#[test]
fn what_is_exempt_counts_for_its_key_and_is_not_refused() {
    alone_on(1, |limits| {
        let a = Key::from("a").with_max_jobs(2);
        let own = [(); 3].map(|()| Charge::exempt(limits, Some(&a)).unwrap());
        own.iter().for_each(|it| it.queue(|| Some(20 * MS), false));
        let is_refused = || {
            let refused = limits.admit(Some(&a), Some((false, None))).err();
            refused.is_some_and(|error| error.kind() == JoinErrorKind::KeyFull)
        };
        let [first, next, _last] = own;
        assert!(is_refused());
        first.release();
        assert!(is_refused());
        next.release();
        assert!(!is_refused());
    });
}

/// There are 64 in the table of this model.
#[test]
fn a_table_that_is_full_of_keys_refuses_others_and_takes_what_is_exempt() {
    alone_on(1, |limits| {
        let keys = (0..1_000).map(|nth| Key::from(nth.to_string()));
        let taken: Vec<_> = keys
            .filter_map(|key| Charge::new(limits, Some(&key)).ok())
            .collect();
        assert_eq!(taken.len(), 64);
        let another = Key::from("another");
        let error = limits
            .admit(Some(&another), Some((false, None)))
            .err()
            .unwrap();
        assert!(error.to_string().contains("too many keys"), "{error}");
        let exempt = Charge::exempt(limits, Some(&another)).unwrap();
        exempt.queue(|| Some(90 * MS), false);
        drop(taken);
        assert!(limits.is_free(), "what has no slot counts nothing");
    });
}

/// A key has no more jobs than it may have, and a job that has ended, or was refused, leaves nothing
/// in the table.
#[test]
fn a_key_is_bounded_and_leaves_nothing() {
    check(|| {
        let limits = limits(1);
        let key = Key::from("a").with_max_jobs(1);
        let threads = [(); 3].map(|()| {
            let (limits, key) = (limits.clone(), key.clone());
            thread::spawn(move || {
                let charge = Charge::new(&limits, Some(&key)).ok();
                charge.iter().for_each(|it| it.queue(|| None, false));
                thread::yield_now();
                charge
            })
        });
        let charges = threads.map(|thread| thread.join().unwrap());
        let taken = charges.iter().flatten().count();
        assert_eq!(taken, 1);
        assert!(limits.admit(Some(&key), None).is_err());
        let another = Key::from("b").with_max_jobs(1);
        drop(limits.admit(Some(&another), Some((false, None))).unwrap());
        drop(charges);
        assert!(limits.is_free());
    });
}
