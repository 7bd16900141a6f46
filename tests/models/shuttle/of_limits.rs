//! Jobs that are charged, begin, end or are closed, beside those that wait for room: the code of
//! `limits/`. The semaphores are Tokio's, whose calls are single steps here. (How much room there is:
//! `of_room.rs`.)

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use shuttle::future::block_on;
use shuttle::thread;
use tokio::sync::AcquireError;

use crate::check;
use crate::key::Key;
use crate::limits::{Charge, Limit, Limits};
use crate::pace::Shares;
use crate::pace::clock::{nanos, now};

/// Slow enough that no window ends while a test runs.
pub(crate) const MS: Duration = Duration::from_secs(5);

pub(crate) fn limits(threads: usize) -> Arc<Limits> {
    with_jobs(None, threads)
}

pub(crate) fn with_jobs(jobs: Option<usize>, threads: usize) -> Arc<Limits> {
    with_wait(100 * MS, jobs, threads)
}

pub(crate) fn with_wait(wait: Duration, jobs: Option<usize>, threads: usize) -> Arc<Limits> {
    let wait = Some(wait);
    let shares = Arc::new(Shares::new(threads, wait));
    Limits::new(Limit { jobs, wait }, threads, &shares)
}

/// A job that takes that long, or nobody knows how long, of a site of its own. It is queued.
pub(crate) fn job(limits: &Arc<Limits>, time: Option<Duration>, is_short: bool) -> Option<Charge> {
    let charge = limits.admit(None, Some((is_short, None))).ok()?;
    charge.queue(|| time, is_short);
    Some(charge)
}

/// Queues such jobs until one is refused.
pub(crate) fn fill(limits: &Arc<Limits>, time: Option<Duration>, is_short: bool) -> Vec<Charge> {
    let jobs = std::iter::from_fn(|| job(limits, time, is_short));
    jobs.collect()
}

/// One schedule: nothing runs beside it.
pub(crate) fn alone(test: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(test, 1);
}

/// The same, with the limits of so many threads.
pub(crate) fn alone_on(threads: usize, test: impl Fn(&Arc<Limits>) + Send + Sync + 'static) {
    alone(move || test(&limits(threads)));
}

#[test]
fn what_was_charged_is_free_at_the_end() {
    check(|| {
        let limits = limits(1);
        let jobs = [60, 70, 30].map(|time| {
            let limits = limits.clone();
            thread::spawn(move || drop(job(&limits, Some(time * MS), false)))
        });
        jobs.into_iter().for_each(|job| job.join().unwrap());
        assert!(limits.is_free());
    });
}

/// The worker releases a job that it has run, and another thread closes it, or drops it. Also where
/// the job has a key.
#[test]
fn a_charge_is_given_back_once() {
    for key in [None, Some("a")] {
        check(move || {
            let limits = limits(1);
            let others = job(&limits, Some(200 * MS), false);
            let key = key.map(Key::from);
            let one = limits.admit(key.as_ref(), Some((true, None)));
            let one: Arc<Charge> = one.map(Arc::new).unwrap();
            one.queue(|| None, true);
            let worker = thread::spawn({
                let one = one.clone();
                move || {
                    one.pause();
                    one.release();
                }
            });
            one.release();
            worker.join().unwrap();
            drop(others);
            assert!(limits.is_free(), "though the charge is still there");
            drop(one);
        });
    }
}

/// Two wait for room while others come and go, and nothing is lost.
#[test]
fn who_waits_for_room_gets_it() {
    check(|| {
        let limits = limits(1);
        let all = fill(&limits, Some(200 * MS), false);
        let waiters = [(), ()].map(|()| {
            let limits = limits.clone();
            thread::spawn(move || drop(block_on(acquire(limits)).unwrap()))
        });
        let other = limits.clone();
        let other = thread::spawn(move || drop(job(&other, Some(70 * MS), false)));
        drop(all);
        waiters
            .into_iter()
            .for_each(|waiter| waiter.join().unwrap());
        other.join().unwrap();
        assert!(limits.is_free());
    });
}

async fn acquire(limits: Arc<Limits>) -> Result<Charge, AcquireError> {
    Charge::new(&limits, None).unwrap().acquire().await
}

type Waiters = Vec<Pin<Box<dyn Future<Output = Result<Charge, AcquireError>>>>>;

fn waiters(limits: &Arc<Limits>, n: usize) -> Waiters {
    let wait = || Box::pin(acquire(limits.clone())) as _;
    std::iter::repeat_with(wait).take(n).collect()
}

/// Those of them that have been admitted.
fn admitted(waiters: &mut Waiters) -> Vec<Charge> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut all = Vec::new();
    waiters.retain_mut(|it| match it.as_mut().poll(&mut cx) {
        Poll::Ready(charge) => {
            all.push(charge.unwrap());
            false
        }
        Poll::Pending => true,
    });
    all
}

/// A wait ends, by its turn or since its caller gives up, beside another one, and beside a job
/// whose end makes room for one of them.
#[test]
fn a_turn_that_is_not_taken_goes_to_the_next() {
    check(|| {
        let limits = limits(1);
        let all = fill(&limits, Some(200 * MS), false);
        let mut first = waiters(&limits, 1);
        assert!(admitted(&mut first).is_empty());
        let next = thread::spawn({
            let limits = limits.clone();
            move || drop(block_on(acquire(limits)).unwrap())
        });
        let worker = thread::spawn(move || drop(all));
        drop(first);
        worker.join().unwrap();
        next.join().unwrap();
        assert!(limits.is_free());
    });
}

/// A hundred callers, each of which submits a job of 30 ms once it has its turn: turns for all of
/// them, by the length of tiny jobs, made each wait for three seconds.
#[test]
fn there_are_no_more_turns_than_threads_before_their_jobs_are_queued() {
    alone_on(2, |limits| {
        let all = fill(limits, Some(200 * MS), false);
        let mut waiters = waiters(limits, 20);
        assert!(admitted(&mut waiters).is_empty());
        drop(all);
        let first = admitted(&mut waiters);
        assert_eq!(first.len(), 2);
        assert!(admitted(&mut waiters).is_empty());
        // Not against one that does not wait.
        assert!(limits.admit(None, Some((false, None))).is_ok());
        let time = Some(80 * MS);
        first.iter().for_each(|it| it.queue(|| time, false));
        // 160 of 180: there is room for others.
        let next = admitted(&mut waiters);
        assert_eq!(next.len(), 2);
        next.iter().for_each(|it| it.queue(|| time, false));
        assert!(admitted(&mut waiters).is_empty());
        drop(first);
        assert_eq!(admitted(&mut waiters).len(), 2);
    });
}

/// Short jobs of callers that wait had no limit at all.
#[test]
fn a_waiter_needs_room_for_a_short_job_too() {
    alone_on(1, |limits| {
        let short = fill(limits, Some(9 * MS), true);
        let mut waiters = waiters(limits, 1);
        assert!(admitted(&mut waiters).is_empty());
        drop(short);
        assert_eq!(admitted(&mut waiters).len(), 1);
    });
}

/// Each short job that began made room that was taken by the next short one, and the wait had no
/// end.
#[test]
fn short_jobs_that_come_and_go_do_not_pass_a_wait_for_ever() {
    alone_on(1, |limits| {
        let mut short = fill(limits, Some(9 * MS), true);
        let mut long = fill(limits, Some(30 * MS), false);
        let mut waiters = waiters(limits, 1);
        assert!(admitted(&mut waiters).is_empty());
        let mut ended = 0;
        while admitted(&mut waiters).is_empty() {
            drop(short.remove(0));
            short.extend(job(limits, Some(9 * MS), true));
            // After some of them, another one has had its turn.
            ended += 1;
            if ended % 10 == 0 {
                drop(long.pop().expect("the wait ends while jobs do"));
            }
        }
    });
}

/// 100 clients that uploaded slowly filled a lane that did nothing.
#[test]
fn a_permit_that_was_tried_counts_no_time_before_its_job_and_asks_again_then() {
    alone_on(1, |limits| {
        let mut permits: Vec<_> = (0..100)
            .map(|_| limits.admit(None, Some((false, None))).unwrap())
            .collect();
        let all = fill(limits, Some(30 * MS), false);
        assert_eq!(all.len(), 3);
        // A short one is not refused for those.
        for permit in &permits {
            assert!(permit.admit_in_time(Some((false, None))).is_err());
            assert!(permit.admit_in_time(Some((true, None))).is_ok());
        }
        drop(all);
        let one = permits.pop().unwrap();
        one.admit_in_time(Some((false, None))).unwrap();
        one.queue(|| None, false);
        drop((one, permits));
        assert!(limits.is_free());
    });
}

#[test]
fn a_permit_that_was_waited_for_is_not_refused() {
    alone_on(1, |limits| {
        let one = admitted(&mut waiters(limits, 1)).pop().unwrap();
        let _all = fill(limits, Some(30 * MS), false);
        one.admit_in_time(Some((false, None))).unwrap();
    });
}

/// A caller that waited for time held a permit meanwhile: one job in the lane, and all short ones
/// were refused.
#[test]
fn a_wait_for_time_holds_no_permit_of_the_limit_in_jobs() {
    alone(|| {
        let limits = with_jobs(Some(8), 1);
        let long = fill(&limits, Some(200 * MS), false);
        assert_eq!(long.len(), 1);
        let mut waiters = waiters(&limits, 20);
        assert!(admitted(&mut waiters).is_empty());
        assert_eq!(fill(&limits, Some(MS), true).len(), 7);
        drop(long);
        let one = admitted(&mut waiters);
        assert_eq!((one.len(), limits.jobs()), (1, Some((8, 1))));
    });
}

/// A future that waits keeps nobody waiting.
#[test]
fn a_job_that_pauses_counts_nothing() {
    alone_on(1, |limits| {
        let all = fill(limits, Some(45 * MS), false);
        all.iter().for_each(Charge::pause);
        assert!(limits.is_free());
        assert_eq!(fill(limits, Some(45 * MS), false).len(), 2);
    });
}

/// Without a permit, also if there is no room.
#[test]
fn what_is_exempt_counts_in_time() {
    alone_on(1, |limits| {
        let own: Vec<_> = (0..8)
            .map(|_| Charge::exempt(limits, None).unwrap())
            .collect();
        own.iter().for_each(|own| own.queue(|| None, false));
        assert!(limits.admit(None, Some((false, None))).is_err());
        drop(own);
        assert!(limits.is_free());
        let (jobs, wait) = (Some(1), None);
        let shares = Arc::new(Shares::new(1, wait));
        let in_jobs = Limits::new(Limit { jobs, wait }, 1, &shares);
        assert!(Charge::exempt(&in_jobs, None).is_none());
    });
}

/// Nor has the next one a turn before its job is there.
#[test]
fn a_permit_that_needs_no_wait_has_a_turn() {
    alone_on(1, |limits| {
        let one = limits.admit(None, None).unwrap();
        assert!(limits.admit(None, None).is_err());
        let all = fill(limits, Some(30 * MS), false);
        one.admit_in_time(Some((false, None))).unwrap();
        one.queue(|| Some(MS), false);
        drop(all);
        drop(limits.admit(None, None).unwrap());
        drop(one);
        assert!(limits.is_free());
    });
}

/// A caller that keeps its permit keeps nobody from theirs for longer than a window.
#[test]
fn a_turn_is_forgotten_at_the_end_of_its_window() {
    alone(|| {
        let limits = with_wait(Duration::from_millis(1), None, 1);
        let mut waiters = waiters(&limits, 2);
        let mut kept = Vec::new();
        while kept.len() < 2 {
            limits.look();
            kept.extend(admitted(&mut waiters));
        }
        drop(kept);
        assert!(limits.is_free());
    });
}

/// Also in later windows than the first one.
#[test]
fn a_turn_counts_in_its_window() {
    alone(|| {
        let window = Duration::from_millis(20);
        let limits = with_wait(window, None, 1);
        while now() < nanos(window) {}
        let is_refused = || {
            let _one = limits.admit(None, None).unwrap();
            limits.admit(None, None).is_err()
        };
        // Unless the window has just ended.
        while !is_refused() {}
    });
}

/// Its job waits for those of its key, whatever the others wait for.
#[test]
fn a_permit_of_a_key_waits_for_no_time() {
    alone_on(1, |limits| {
        let _all = fill(limits, Some(200 * MS), false);
        let mut cx = Context::from_waker(Waker::noop());
        let permit = Charge::new(limits, Some(&Key::from("a"))).unwrap();
        let permit = Box::pin(permit.acquire()).as_mut().poll(&mut cx);
        assert!(matches!(permit, Poll::Ready(Ok(_))));
    });
}
