//! Jobs that are charged, begin, end or are closed, beside those that wait for room: the code of
//! `limits/`. The semaphores are Tokio's, whose calls are single steps here.

use std::sync::Arc;
use std::time::Duration;

use shuttle::future::block_on;
use shuttle::thread;

use crate::check;
use crate::error::JoinErrorKind;
use crate::limits::{Charge, Limit, Limits};
use crate::metrics::call_sites::Mean;

const MS: Duration = Duration::from_millis(1);
/// That of one thread, with the limit of [`limits`].
const ROOM: Duration = Duration::from_millis(90);

fn limits(threads: usize) -> Arc<Limits> {
    let wait = Some(100 * MS);
    Limits::new(Limit { jobs: None, wait }, threads).unwrap()
}

/// A job that takes that long, or nobody knows how long, of a site of its own. It is queued.
fn job(limits: &Arc<Limits>, time: Option<Duration>, is_short: bool) -> Option<Box<Charge>> {
    let mean = <Mean>::default();
    time.into_iter().for_each(|time| mean.add(time));
    let charge = limits.admit(is_short).ok()?;
    charge.queue(&mean, is_short);
    Some(charge)
}

/// Queues such jobs until one is refused.
fn fill(limits: &Arc<Limits>, time: Option<Duration>, is_short: bool) -> Vec<Charge> {
    let jobs = std::iter::from_fn(|| job(limits, time, is_short));
    jobs.map(|charge| *charge).collect()
}

fn assert_all_is_free(limits: &Limits, threads: u32) {
    let free: Vec<_> = limits
        .semaphores()
        .map(|it| it.available_permits())
        .collect();
    let room = (threads * ROOM).as_micros() as usize;
    assert_eq!(free, [room, room]);
}

/// One schedule: nothing runs beside it.
fn alone(test: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(test, 1);
}

/// A charge that finds too little, and pays the rest later, meets others that are given back.
#[test]
fn what_was_charged_is_free_at_the_end() {
    check(|| {
        let limits = limits(1);
        let jobs = [60, 70, 30].map(|time| {
            let limits = limits.clone();
            thread::spawn(move || drop(job(&limits, Some(time * MS), false)))
        });
        jobs.into_iter().for_each(|job| job.join().unwrap());
        assert_all_is_free(&limits, 1);
    });
}

/// The worker releases a job that it has run, and another thread closes it, or drops it.
#[test]
fn a_charge_is_given_back_once() {
    check(|| {
        let limits = limits(1);
        let others = job(&limits, Some(200 * MS), false);
        let one: Arc<Charge> = limits.admit(true).unwrap().into();
        one.queue(&<Mean>::default(), true);
        let worker = thread::spawn({
            let one = one.clone();
            move || {
                one.pause();
                one.release();
            }
        });
        one.release();
        worker.join().unwrap();
        drop((others, one));
        assert_all_is_free(&limits, 1);
    });
}

/// Two wait for room while others come and go, and nothing is lost.
#[test]
fn who_waits_for_room_gets_it() {
    check(|| {
        let limits = limits(1);
        let all = fill(&limits, Some(200 * MS), false);
        let waiters = [(), ()].map(|()| {
            let limits = limits.clone();
            thread::spawn(move || drop(block_on(limits.acquire()).unwrap()))
        });
        let other = limits.clone();
        let other = thread::spawn(move || drop(job(&other, Some(70 * MS), false)));
        drop(all);
        waiters
            .into_iter()
            .for_each(|waiter| waiter.join().unwrap());
        other.join().unwrap();
        assert_all_is_free(&limits, 1);
    });
}

/// Of many that wait, those are admitted for which there is room, and the others wait on.
#[test]
fn one_that_has_waited_is_charged_before_the_next() {
    alone(|| {
        let limits = limits(1);
        let all = fill(&limits, Some(200 * MS), false);
        let mut waiters: Vec<_> = (0..20)
            .map(|_| Box::pin(limits.clone().acquire()))
            .collect();
        let mut poll = || {
            let waker = std::task::Waker::noop();
            let mut cx = std::task::Context::from_waker(waker);
            let before = waiters.len();
            let mut admitted = Vec::new();
            waiters.retain_mut(|it| match it.as_mut().poll(&mut cx) {
                std::task::Poll::Ready(charge) => {
                    admitted.push(charge.unwrap());
                    false
                }
                std::task::Poll::Pending => true,
            });
            assert_eq!(before - waiters.len(), admitted.len());
            admitted
        };
        assert!(poll().is_empty());
        drop(all);
        // An eighth of the room each, since nothing is known.
        let admitted = poll();
        assert_eq!(admitted.len(), 8);
        assert!(poll().is_empty());
        drop(admitted);
        assert_eq!(poll().len(), 8);
    });
}

#[test]
fn jobs_are_admitted_while_those_before_them_take_no_longer() {
    alone(|| {
        // 180 ms of room: the twelfth finds 165.
        assert_eq!(fill(&limits(2), Some(15 * MS), false).len(), 12);
        let refused = |limits: &Arc<Limits>| limits.admit(false).err().unwrap();
        let limits = limits(1);
        let _all = fill(&limits, Some(15 * MS), false);
        assert_eq!(refused(&limits).kind(), JoinErrorKind::QueueFull);
        assert_eq!(refused(&limits).retry_after(), Some(100 * MS));
    });
}

#[test]
fn a_few_jobs_are_admitted_of_which_nothing_is_known() {
    alone(|| {
        let limits = limits(1);
        assert_eq!(fill(&limits, None, false).len(), 8);
        let known = limits.admit(false).unwrap();
        known.begin();
        known.end(true, &<Mean>::default());
        // It has taken no time to speak of: now others count as little as that.
        assert!(fill(&limits, None, false).len() > 100);
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
    alone(|| {
        let limits = limits(1);
        let _long = fill(&limits, Some(40 * MS), false);
        assert_eq!(fill(&limits, Some(9 * MS), true).len(), 10);
    });
}

/// They pass the others, and a permit may be for one.
#[test]
fn short_jobs_count_for_others_too() {
    alone(|| {
        let limits = limits(1);
        let short = fill(&limits, Some(9 * MS), true);
        assert_eq!(short.len(), 10);
        assert!(limits.admit(false).is_err());
        drop(short);
        assert_all_is_free(&limits, 1);
        // By a permit: nobody knows yet what it will be used for.
        let permits: Vec<_> = std::iter::from_fn(|| {
            let permit = limits.admit(false).ok()?;
            permit.set(None, false);
            let mean = <Mean>::default();
            mean.add(9 * MS);
            permit.queue(&mean, true);
            Some(permit)
        })
        .collect();
        assert_eq!(permits.len(), 10);
        assert!(limits.admit(true).is_err());
        drop(permits);
        assert_all_is_free(&limits, 1);
    });
}

#[test]
fn a_debt_is_paid_before_there_is_room() {
    alone(|| {
        let limits = limits(1);
        let mut all = fill(&limits, Some(89 * MS), false);
        assert_eq!(all.len(), 2); // 178 of 90 ms
        drop(all.pop());
        all.extend(job(&limits, Some(89 * MS), false).map(|charge| *charge));
        assert_eq!(all.len(), 2);
        all.clear();
        assert_all_is_free(&limits, 1);
    });
}

/// A future that waits keeps nobody waiting.
#[test]
fn a_job_that_pauses_counts_nothing() {
    alone(|| {
        let limits = limits(1);
        let all = fill(&limits, Some(45 * MS), false);
        all.iter().for_each(Charge::pause);
        assert_all_is_free(&limits, 1);
        assert_eq!(fill(&limits, Some(45 * MS), false).len(), 2);
    });
}

/// Without a permit, also if there is no room.
#[test]
fn what_is_exempt_counts_in_time() {
    alone(|| {
        let limits = limits(1);
        let own: Vec<_> = (0..8).map(|_| Charge::exempt(&limits).unwrap()).collect();
        own.iter()
            .for_each(|own| own.queue(&<Mean>::default(), false));
        assert!(limits.admit(false).is_err());
        drop(own);
        assert_all_is_free(&limits, 1);
        let (jobs, wait) = (Some(1), None);
        assert!(Charge::exempt(&Limits::new(Limit { jobs, wait }, 1).unwrap()).is_none());
    });
}

#[test]
fn both_limits_hold() {
    alone(|| {
        let (jobs, wait) = (Some(3), Some(100 * MS));
        let limits = Limits::new(Limit { jobs, wait }, 1).unwrap();
        let three = fill(&limits, Some(MS), false);
        assert_eq!(three.len(), 3);
        assert_eq!(limits.jobs(), Some((3, 3)));
        assert_eq!(limits.admit(false).err().unwrap().retry_after(), None);
        drop(three);
        assert_eq!(limits.jobs(), Some((3, 0)));
        let one = fill(&limits, Some(500 * MS), false);
        assert_eq!(one.len(), 1);
        assert!(limits.admit(false).err().unwrap().retry_after().is_some());
    });
}

#[test]
fn a_stream_counts_what_is_left_of_it() {
    alone(|| {
        let (limits, of_site) = (limits(1), <Mean>::default());
        of_site.add(60 * MS);
        let mut stream = limits.admit(false).unwrap();
        stream.is_stream = true;
        stream.queue(&of_site, false);
        // A step that takes some time: what is left is less, and its site learns nothing yet.
        stream.begin();
        stream.end(false, &of_site);
        assert_eq!(of_site.get(), Some(60 * MS));
        stream.queue(&of_site, false);
        let room = limits.semaphores().next().unwrap().available_permits();
        assert!(room >= 30_000, "{room}");
        stream.begin();
        stream.end(true, &of_site);
        assert!(of_site.get() < Some(60 * MS));
    });
}
