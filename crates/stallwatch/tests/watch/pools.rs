//! Work of a pool may take longer than a poll, or as long as it likes. What is told of it?

#[cfg(target_os = "linux")]
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use stallwatch::{Cause, Name, Pool, Watch};

use crate::setting::{blocks, watched_as};

fn pool() -> Pool {
    let pool = Pool::new("Cut it").with_limit(Duration::from_millis(200));
    pool.offload_by("Give it to the pool", "Spawn by the pool")
}

/// Has a thread of the pool do it.
fn work(
    pool: Pool,
    name: &'static str,
    deadline: Option<Instant>,
    work: impl FnOnce() + Send + 'static,
) -> JoinHandle<()> {
    thread::spawn(move || {
        let _in = pool.enter(Name::named(name), deadline);
        work();
    })
}

/// Of each of two pools, and it is no stall of a poll.
#[test]
fn work_over_its_limit_is_told() {
    let pools = [pool(), pool()];
    let set = |watch: Watch| pools.iter().fold(watch, Watch::pool);
    let watched = watched_as(Some(1), set);
    for (pool, name) in pools.into_iter().zip(["one", "two"]) {
        let compute = watched.compute(name);
        work(pool, name, None, compute).join().unwrap();
        let stall = watched.stall_of(name);
        assert_eq!(*stall.cause(), Cause::Computes);
        assert!(stall.is_of_pool() && stall.lasted() >= Duration::from_millis(200));
        assert_eq!(stall.remedy(), "Cut it");
        let of_polls = watched.watcher.stalls_by_culprit();
        assert!(!of_polls.contains(&(Some(Name::named(name)), 1)));
    }
    assert_eq!(watched.watcher.pool_stalls(), 2);
}

/// The others compute on until the late one is counted.
#[test]
fn work_without_a_limit_is_told_after_its_deadline() {
    let pool = Pool::new("Stop it");
    let watched = watched_as(Some(1), |watch| watch.pool(&pool));
    let now = Instant::now();
    let much_later = now + Duration::from_secs(3600);
    let deadlines = [
        ("patient", None),
        ("in time", Some(much_later)),
        ("late", Some(now)),
    ];
    let all = deadlines
        .map(|(name, deadline)| work(pool.clone(), name, deadline, watched.compute("late")));
    for work in all {
        work.join().unwrap();
    }
    assert_eq!(watched.stall_of("late").remedy(), "Stop it");
    watched.assert_none_was_told_of(&["patient", "in time"]);
}

/// It is over its limit long before the own work is.
#[test]
fn work_of_another_pool_is_not_told() {
    let pool = |limit| Pool::new("").with_limit(Duration::from_millis(limit));
    let (own, other) = (pool(500), pool(25));
    let watched = watched_as(Some(1), |watch| watch.pool(&own));
    let (began, has_begun) = mpsc::channel();
    let compute = watched.compute("ours");
    let theirs = work(other, "theirs", None, move || {
        began.send(()).unwrap();
        compute();
    });
    has_begun.recv().unwrap();
    let ours = work(own, "ours", None, watched.compute("ours"));
    theirs.join().unwrap();
    ours.join().unwrap();
    watched.stall_of("ours");
    watched.assert_none_was_told_of(&["theirs"]);
}

/// It cannot await.
#[cfg(target_os = "linux")]
#[test]
fn work_that_blocks_is_told_what_to_do() {
    let pool = pool();
    let watched = watched_as(Some(1), |watch| watch.pool(&pool));
    let (read, let_go) = blocks();
    let reads = work(pool, "reads", None, read);
    let stall = watched.stall_of("reads");
    drop(let_go);
    reads.join().unwrap();
    assert!(stall.remedy().contains("spawn_blocking"), "{stall}");
}

/// While other work queues, say.
#[cfg(target_os = "linux")]
#[test]
fn work_without_a_limit_that_waits_is_told_while_that_counts() {
    let counts = Arc::new(AtomicBool::new(false));
    let count = counts.clone();
    let pool = Pool::new("Stop it");
    let pool = pool.with_waits("Await", move || count.load(SeqCst));
    let watched = watched_as(Some(1), |watch| watch.pool(&pool));
    let (read, let_go) = blocks();
    let waits = work(pool.clone(), "waits", None, read);
    // Longer than the limit: a poll that is told, and two more looks.
    watched.stall_as("one");
    watched.stall_as("two");
    watched.assert_none_was_told_of(&["waits"]);
    counts.store(true, SeqCst);
    // It computes for as long as the other one waits.
    let computes = work(pool, "computes", None, watched.compute("waits"));
    let stall = watched.stall_of("waits");
    drop(let_go);
    waits.join().unwrap();
    computes.join().unwrap();
    assert_eq!(*stall.cause(), Cause::Blocks(Some("read")));
    assert_eq!(stall.remedy(), "Await");
    watched.assert_none_was_told_of(&["computes"]);
}

#[test]
fn a_pool_says_what_to_do_about_polls() {
    let pool = pool();
    let watched = watched_as(Some(1), |watch| watch.pool(&pool));
    watched.stall_as("a poll");
    let remedy = watched.stall_of("a poll").remedy().into_owned();
    assert_eq!(remedy, "Give it to the pool");
}
