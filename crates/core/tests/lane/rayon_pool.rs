//! `rayon_pool`: the table of what a library has there, row by row.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use crate::support::busy::Busy;
use crate::support::wait::wait_until;
use crate::support::{Lanes, Stuck, gives, lanes, lanes_with, thread_name};
use twolane_core::{Handle, JoinErrorKind, Priority};

#[test]
fn its_threads_are_those_of_the_priority() {
    let (tell, told) = mpsc::channel();
    let hook = move || tell.send(thread_name()).unwrap();
    let Lanes { cpu, io: _io } = lanes_with(2, |lane| lane.on_thread_start(hook));
    for (priority, prefix) in [(Priority::Normal, "cpu-"), (Priority::High, "cpu-high-")] {
        let pool = cpu.rayon_pool(priority).unwrap();
        let names = pool.broadcast(|it| (it.index(), thread_name()));
        assert_eq!(names, [0, 1].map(|n| (n, format!("{prefix}{n}"))));
        let mut started = [told.recv().unwrap(), told.recv().unwrap()];
        started.sort();
        assert_eq!(started, [0, 1].map(|n| format!("{prefix}{n}")));
        let handle = cpu.handle().with_priority(priority);
        let of_job = handle.spawn_cpu(thread_name).wait().unwrap();
        assert!(of_job.starts_with(prefix), "{of_job}");
    }
}

#[test]
fn what_runs_there_finds_the_lane_and_the_io_lane() {
    let Lanes { cpu, io } = lanes(1);
    let pool = cpu.rayon_pool(Priority::Low).unwrap();
    let (current, spawned, of_io) = pool.install(|| {
        let of_io = twolane_core::spawn_io(async { thread_name() });
        let spawned = tokio::spawn(async { thread_name() });
        (Handle::current().priority(), spawned, of_io.wait().unwrap())
    });
    assert_eq!((current, of_io.as_str()), (Priority::Low, "io"));
    assert_eq!(io.block_on(spawned).unwrap(), "io");
}

/// A worker that rests in the lane is none that rayon can wake.
#[test]
fn idle_workers_come_to_its_work() {
    for threads in [1, 2] {
        let Lanes { cpu, io: _io } = lanes(threads);
        let pool = cpu.rayon_pool(Priority::Normal).unwrap();
        for n in 0..1_000 {
            assert_eq!(pool.install(|| n), n);
            let (mut left, mut right) = (0, 0);
            pool.in_place_scope(|scope| {
                scope.spawn(|_| left = n);
                scope.spawn(|_| right = n);
            });
            assert_eq!((left, right), (n, n));
            if n % 2 == 0 {
                assert_eq!(cpu.spawn_cpu(gives(n)).wait().unwrap(), n);
            }
        }
        // And busy ones.
        let _busy = Busy::with(2 * threads, cpu.handle());
        assert_eq!(pool.broadcast(|_| 1).len(), threads);
        assert_eq!(cpu.spawn_cpu(gives(2)).wait().unwrap(), 2);
    }
}

#[test]
fn it_is_not_limited_and_not_counted() {
    let Lanes { cpu, io: _io } = lanes_with(1, |lane| {
        lane.queue_limit(Priority::Normal, 1).histograms(true)
    });
    let pool = cpu.rayon_pool(Priority::Normal).unwrap();
    let permit = cpu.handle().try_reserve().unwrap();
    assert_eq!(pool.install(|| 1), 1);
    drop(permit);
    let metrics = cpu.handle().metrics();
    assert_eq!((metrics.submitted, metrics.run_time.count()), (0, 0));
    let mut sites = cpu.handle().call_sites().into_iter();
    assert!(sites.all(|site| site.jobs == 0));
}

#[test]
fn a_panic_is_rayons() {
    let Lanes { cpu, io: _io } = lanes(1);
    let pool = cpu.rayon_pool(Priority::Normal).unwrap();
    let panics = || pool.install(|| panic!("planned"));
    let payload = catch_unwind(AssertUnwindSafe(panics)).unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"planned"));
    assert_eq!(pool.install(|| 1), 1);
}

#[test]
fn a_shutdown_waits_for_who_keeps_it() {
    let Lanes { cpu, io: _io } = lanes(2);
    let pool = cpu.rayon_pool(Priority::Normal).unwrap();
    let stuck = Stuck::<()>::start(cpu.handle());
    let left = || cpu.shutdown_timeout(Duration::ZERO).wait();
    // The others need a moment to end.
    wait_until(|| left().threads == 2);
    assert_eq!(left().jobs, 1);
    stuck.end();
    assert_eq!(pool.install(|| 1), 1);
    let refused = cpu.rayon_pool(Priority::Normal).unwrap_err();
    assert_eq!(refused.kind(), JoinErrorKind::Shutdown);
    let other = pool.clone();
    drop(pool);
    assert_eq!(left().threads, 2);
    assert_eq!(Arc::strong_count(&other), 1);
    drop(other);
    assert!(cpu.shutdown().wait().is_empty());
}
