//! What do the counters say, and how long did it all take? (That they balance, call by
//! call: `model`. Under fire: `soak`.)

use std::sync::mpsc;

use crate::support::wait::wait_until;
use crate::support::{Stuck, lanes_with, on_both, with_both};
use tokio::sync::oneshot;
use twolane::Builder;
use twolane::Priority;

#[test]
fn a_snapshot_tells_where_each_job_is() {
    on_both(1, |lanes| {
        let cpu = lanes.cpu.handle();
        let (started, is_suspended) = mpsc::channel();
        let (let_go, wait) = oneshot::channel::<()>();
        let suspended = cpu.spawn(async move {
            started.send(()).unwrap();
            wait.await.unwrap();
        });
        is_suspended.recv().unwrap();
        // It runs after the future's step.
        let (running, end) = Stuck::start(&cpu).split();
        let queued = cpu.spawn_cpu(|| ());
        let cancelled = cpu.spawn_cpu(|| ());
        cancelled.abort();
        let metrics = cpu.metrics();
        assert_eq!((metrics.submitted, metrics.cancelled), (4, 1));
        assert_eq!(
            (metrics.queued, metrics.running, metrics.suspended),
            (1, 1, 1)
        );
        assert_eq!(cpu.with_priority(Priority::High).metrics().submitted, 0);

        // One that was woken is queued again.
        let_go.send(()).unwrap();
        let metrics = cpu.metrics();
        assert_eq!(
            (metrics.queued, metrics.running, metrics.suspended),
            (2, 1, 0)
        );
        end.send(()).unwrap();
        running.wait().unwrap();
        queued.wait().unwrap();
        suspended.wait().unwrap();
        cpu.spawn_cpu(|| panic!("planned")).wait().unwrap_err();
        lanes.cpu.shutdown().wait();
        cpu.spawn_cpu(|| ()).wait().unwrap_err();
        let metrics = cpu.metrics();
        assert_eq!(
            (metrics.submitted, metrics.completed, metrics.panicked),
            (5, 3, 1)
        );
        assert_eq!(
            (metrics.queued, metrics.running, metrics.suspended),
            (0, 0, 0)
        );
        assert_eq!((metrics.rejected, metrics.dropped), (1, 0));
    });
}

#[test]
fn a_snapshot_tells_threads_and_permits() {
    with_both(|backend| {
        let lanes = lanes_with(backend, 2, |b| b.queue_limit(Priority::Normal, 3));
        let cpu = lanes.cpu.handle();
        let permits = || {
            let metrics = cpu.metrics();
            (metrics.queue_limit, metrics.permits_in_use)
        };
        assert_eq!((permits(), cpu.metrics().threads), ((Some(3), 0), 2));
        let (running, end) = Stuck::start(&cpu).split();
        let permit = cpu.try_reserve().unwrap();
        assert_eq!(permits(), (Some(3), 2));
        drop(permit);
        assert_eq!(permits(), (Some(3), 1));
        end.send(()).unwrap();
        running.wait().unwrap();

        let low = cpu.with_priority(Priority::Low);
        let low = low.metrics();
        assert_eq!(
            (low.threads, low.queue_limit, low.permits_in_use),
            (2, None, 0)
        );
    });
}

#[test]
fn what_a_shutdown_drops_is_in_the_books() {
    on_both(1, |lanes| {
        let cpu = lanes.cpu.handle();
        let (started, is_suspended) = mpsc::channel();
        let suspended = cpu.spawn(async move {
            started.send(()).unwrap();
            std::future::pending::<()>().await;
        });
        is_suspended.recv().unwrap();
        let (running, end) = Stuck::start(&cpu).split();
        let queued = cpu.spawn_cpu(|| ());
        let shutdown = lanes.cpu.shutdown();
        assert!(queued.wait().unwrap_err().is_shutdown());
        assert!(suspended.wait().unwrap_err().is_shutdown());
        end.send(()).unwrap();
        running.wait().unwrap();
        shutdown.wait();
        let metrics = cpu.metrics();
        assert_eq!(
            (metrics.submitted, metrics.completed, metrics.dropped),
            (3, 1, 2)
        );
        assert_eq!(
            (metrics.queued, metrics.running, metrics.suspended),
            (0, 0, 0)
        );
    });
}

#[test]
fn nothing_is_timed_unless_the_lane_is_told_to() {
    on_both(1, |lanes| {
        lanes.cpu.spawn_cpu(|| ()).wait().unwrap();
        let metrics = lanes.cpu.handle().metrics();
        assert_eq!(
            (metrics.queue_wait.count(), metrics.run_time.count()),
            (0, 0)
        );
        assert!(metrics.busy_time().is_zero());
    });
}

/// Each of them. A job that waits while this thread counts 3 ms is in the counters with
/// as much, and so is the step that it waits for.
#[test]
fn waits_and_steps_are_timed() {
    use std::time::Duration;
    with_both(|backend| {
        let lanes = lanes_with(backend, 1, Builder::enable_histograms);
        let cpu = lanes.cpu.handle();
        assert_eq!(cpu.metrics().queue_wait.count(), 0);
        assert_eq!(cpu.metrics().run_time.quantile(0.5), None);
        let (running, end) = Stuck::start(&cpu).split();
        let queued = cpu.spawn_cpu(|| ());
        let pause = std::time::Instant::now();
        wait_until(|| pause.elapsed() >= Duration::from_millis(3));
        end.send(()).unwrap();
        queued.wait().unwrap();
        running.wait().unwrap();
        let metrics = cpu.metrics();
        assert_eq!(metrics.queue_wait.count(), 2);
        let longest = metrics.queue_wait.quantile(1.0).unwrap();
        assert!(longest >= Duration::from_millis(3), "{metrics:?}");
        let slowest = metrics.run_time.quantile(1.0).unwrap();
        assert!(slowest >= Duration::from_millis(3), "{metrics:?}");
        assert_eq!(metrics.run_time.count(), 2);
        let counts = metrics.run_time.buckets().map(|(_, count)| count);
        assert_eq!(counts.sum::<u64>(), metrics.run_time.count());
    });
}

/// However short and many the jobs: none is left out. A future that is woken waits
/// in the queue once more, and its second poll is a step of its own.
#[test]
fn every_wait_and_step_is_counted() {
    const EACH: u64 = 100;
    with_both(|backend| {
        let lanes = lanes_with(backend, 1, Builder::enable_histograms);
        let cpu = lanes.cpu.handle();
        for _ in 0..EACH {
            cpu.spawn_cpu(|| ()).wait().unwrap();
        }
        assert_eq!(cpu.metrics().queue_wait.count(), EACH);
        assert_eq!(cpu.metrics().run_time.count(), EACH);
        for _ in 0..EACH {
            let (waits, is_waiting) = mpsc::channel();
            let (wake, woken) = oneshot::channel::<()>();
            let future = cpu.spawn(async move {
                waits.send(()).unwrap();
                woken.await.unwrap();
            });
            is_waiting.recv().unwrap();
            // After its first step.
            cpu.spawn_cpu(|| ()).wait().unwrap();
            wake.send(()).unwrap();
            future.wait().unwrap();
        }
        assert_eq!(cpu.metrics().run_time.count(), 4 * EACH);
        assert_eq!(cpu.metrics().queue_wait.count(), 4 * EACH);
    });
}
