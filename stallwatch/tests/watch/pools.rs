//! Work of a pool may take longer than a poll, or as long as it likes. What is told of it?

use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use stallwatch::{Cause, Name, Pool, Watch, watch};

use crate::limit::time_limit;
use crate::setting::watched_as;

fn pool() -> Pool {
    let pool = Pool::new("Cut it").with_limit(Duration::from_millis(200));
    pool.offload_by("Give it to the pool")
}

#[test]
fn work_over_its_limit_is_told() {
    let _limit = time_limit();
    let pool = pool();
    let watched = watched_as(Some(1), |watch| watch.pool(&pool));
    let compute = watched.compute();
    let slice = thread::spawn(move || {
        let _in = pool.enter(Name::named("slice"), None);
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
    let pool = Pool::new("Stop it");
    let watched = watched_as(Some(1), |watch| watch.pool(&pool));
    let soon = Instant::now() + Duration::from_secs(1);
    let both = [("patient", None), ("late", Some(soon))].map(|(name, deadline)| {
        let compute = watched.compute();
        thread::spawn(move || {
            let _in = pool.enter(Name::named(name), deadline);
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

/// It is over its limit long before the own work is.
#[test]
fn work_of_another_pool_is_not_told() {
    let _limit = time_limit();
    let pool = |limit| Pool::new("").with_limit(Duration::from_millis(limit));
    let (own, other) = (pool(500), pool(25));
    let watched = watched_as(Some(1), |watch| watch.pool(&own));
    let (began, has_begun) = mpsc::channel();
    let begin = |pool: Pool, name| {
        let (compute, began) = (watched.compute(), began.clone());
        thread::spawn(move || {
            let _in = pool.enter(Name::named(name), None);
            began.send(()).unwrap();
            compute();
        })
    };
    let theirs = begin(other, "theirs");
    has_begun.recv().unwrap();
    let ours = begin(own, "ours");
    theirs.join().unwrap();
    ours.join().unwrap();
    assert_eq!(watched.stalls.recv().unwrap().culprit(), Some("ours"));
    assert!(watched.stalls.try_recv().is_err());
}

#[test]
fn two_pools_are_watched() {
    let _limit = time_limit();
    let pools = [pool(), pool()];
    let set = |watch: Watch| pools.iter().fold(watch, Watch::pool);
    let watched = watched_as(Some(1), set);
    for (pool, name) in pools.into_iter().zip(["one", "two"]) {
        watched.told.store(false, SeqCst);
        let compute = watched.compute();
        let work = thread::spawn(move || {
            let _in = pool.enter(Name::named(name), None);
            compute();
        });
        work.join().unwrap();
        assert_eq!(watched.stalls.recv().unwrap().culprit(), Some(name));
    }
}

/// It cannot await.
#[cfg(target_os = "linux")]
#[test]
fn work_that_blocks_is_told_what_to_do() {
    let _limit = time_limit();
    let pool = pool();
    let watched = watched_as(Some(1), |watch| watch.pool(&pool));
    let told = watched.told.clone();
    let work = thread::spawn(move || {
        let _in = pool.enter(Name::named("sleeps"), None);
        while !told.load(SeqCst) {
            thread::sleep(Duration::from_secs(2));
        }
    });
    let stall = watched.stalls.recv().unwrap();
    work.join().unwrap();
    assert!(stall.remedy().contains("spawn_blocking"), "{stall}");
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
}
