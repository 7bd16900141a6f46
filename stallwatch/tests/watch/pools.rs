//! Work of a pool may take longer than a poll, or as long as it likes. What is told of it?

use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

use stallwatch::{Cause, Name, Pool, Work, watch};

use crate::limit::time_limit;
use crate::setting::watched_as;

const SLICE: usize = 0;
const WHOLE: usize = 1;
static KINDS: [Work; 2] = [
    Work {
        limit: Some(Duration::from_millis(200)),
        remedy: "Cut it",
    },
    Work {
        limit: None,
        remedy: "Stop it",
    },
];

fn pool() -> Pool {
    Pool::new(&KINDS).offload_by("Give it to the pool")
}

#[test]
fn work_over_its_limit_is_told() {
    let _limit = time_limit();
    let pool = pool();
    let watched = watched_as(Some(1), |watch| watch.pool(&pool));
    let compute = watched.compute();
    let slice = thread::spawn(move || {
        let _in = pool.enter(SLICE, Name::named("slice"), None);
        compute();
    });
    slice.join().unwrap();
    let stall = watched.stalls.recv().unwrap();
    assert_eq!(stall.culprit(), Some("slice"));
    assert_eq!(*stall.cause(), Cause::Computes);
    assert!(stall.is_of_pool() && stall.lasted() >= Duration::from_millis(200));
    assert_eq!(stall.remedy(), "Cut it");
    assert_eq!(
        (watched.watcher.pool_stalls(), watched.watcher.stalls()),
        (1, 0)
    );
    assert_eq!(watched.watcher.stalls_by_culprit(), []);
}

/// The one without a deadline computes on until the late one is told.
#[test]
fn work_without_a_limit_is_told_after_its_deadline() {
    let _limit = time_limit();
    let pool = pool();
    let watched = watched_as(Some(1), |watch| watch.pool(&pool));
    let soon = Instant::now() + Duration::from_secs(1);
    let both = [("patient", None), ("late", Some(soon))].map(|(name, deadline)| {
        let compute = watched.compute();
        thread::spawn(move || {
            let _in = pool.enter(WHOLE, Name::named(name), deadline);
            compute();
        })
    });
    for work in both {
        work.join().unwrap();
    }
    let stall = watched.stalls.recv().unwrap();
    assert_eq!(stall.culprit(), Some("late"));
    assert_eq!(stall.remedy(), "Stop it");
    assert!(watched.stalls.try_recv().is_err());
}

#[test]
fn work_of_another_pool_is_not_told() {
    let _limit = time_limit();
    let (own, other) = (pool(), pool());
    let watched = watched_as(Some(1), |watch| watch.pool(&own));
    let compute = watched.compute();
    let theirs = thread::spawn(move || {
        let _in = other.enter(SLICE, Name::named("theirs"), None);
        compute();
    });
    let compute = watched.compute();
    let ours = thread::spawn(move || {
        let _in = own.enter(SLICE, Name::named("ours"), None);
        compute();
    });
    theirs.join().unwrap();
    ours.join().unwrap();
    assert_eq!(watched.stalls.recv().unwrap().culprit(), Some("ours"));
    assert!(watched.stalls.try_recv().is_err());
}

#[test]
fn a_pool_says_what_to_do_about_polls() {
    let _limit = time_limit();
    let pool = pool();
    let watched = watched_as(Some(1), |watch| watch.pool(&pool));
    let compute = watched.compute();
    watched.spawn_and_wait(watch(async move { compute() }));
    assert_eq!(
        watched.stalls.recv().unwrap().remedy(),
        "Give it to the pool"
    );
    watched.told.store(false, SeqCst);
}

#[test]
#[should_panic = "no work of kind 2"]
fn a_kind_that_is_none_panics() {
    let pool = pool();
    let _watched = watched_as(Some(1), |watch| watch.pool(&pool));
    let _in = pool.enter(2, Name::OTHER, None);
}
