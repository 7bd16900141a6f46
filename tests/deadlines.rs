//! What is not wanted any more after its deadline, and who is told when?

mod support;

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use support::{BOTH, Dropped, Stuck, lanes, lanes_with, time_limit};
use twolane::Priority;

/// For what is to be submitted by then.
const SOON: Duration = Duration::from_millis(250);
/// For a job that is to have started, or ended, by then.
const LATER: Duration = Duration::from_millis(1500);
const NEVER: Duration = Duration::from_secs(3600);

/// The only thread is stuck, so it is not the queue that tells.
#[test]
fn a_queued_job_is_told_at_its_deadline_and_never_runs() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let cpu = lanes.cpu.handle();
        let (stuck, let_go) = Stuck::start(&cpu).split();
        let ran = Arc::new(AtomicBool::new(false));
        let by_job = ran.clone();
        let (dropped, drops) = mpsc::channel();
        let captured = Dropped(dropped);
        let permit = cpu
            .try_admit()
            .unwrap()
            .with_deadline(Instant::now() + SOON);
        let late = permit.spawn_cpu(move || {
            let _captured = captured;
            by_job.store(true, SeqCst);
        });
        let error = late.wait().unwrap_err();
        assert!(error.is_expired() && !error.is_cancelled(), "{error}");
        assert!(drops.try_recv().is_err(), "the lane drops it, in its turn");
        let_go.send(()).unwrap();
        stuck.wait().unwrap();
        assert!(drops.recv().unwrap().starts_with("cpu-"));
        assert!(!ran.load(SeqCst));
        let metrics = cpu.metrics();
        assert_eq!((metrics.expired, metrics.completed), (1, 1));
    }
}

#[test]
fn one_that_has_passed_is_refused() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let cpu = lanes.cpu.handle();
        let permit = cpu.try_admit().unwrap().with_deadline(Instant::now());
        let error = permit.spawn_cpu(|| ()).wait().unwrap_err();
        assert!(error.is_expired(), "{error}");
        let admit = cpu.admit().with_deadline(Instant::now());
        assert!(admit.wait().unwrap_err().is_expired());
        assert_eq!((cpu.metrics().submitted, cpu.metrics().rejected), (0, 2));
    }
}

#[test]
fn a_closure_that_runs_sees_it() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let cpu = lanes.cpu.handle();
        let permit = cpu
            .try_admit()
            .unwrap()
            .with_deadline(Instant::now() + LATER);
        let task = permit.spawn_cpu(|| {
            let job = twolane::current_job().unwrap();
            let by_context = std::thread::spawn(move || {
                while job.checkpoint().is_ok() {
                    std::thread::yield_now();
                }
            });
            while twolane::checkpoint().is_ok() {
                std::thread::yield_now();
            }
            by_context.join().unwrap();
            "what I have so far"
        });
        // It ended with an output all the same.
        assert_eq!(task.wait().unwrap(), "what I have so far");
        assert_eq!(cpu.metrics().completed, 1);
    }
}

#[test]
fn a_suspended_future_is_dropped() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let cpu = lanes.cpu.handle();
        let (dropped, drops) = mpsc::channel();
        let captured = Dropped(dropped);
        let permit = cpu
            .try_admit()
            .unwrap()
            .with_deadline(Instant::now() + SOON);
        let task = permit.spawn(async move {
            let _captured = captured;
            std::future::pending::<()>().await;
        });
        assert!(task.wait().unwrap_err().is_expired());
        assert!(drops.recv().unwrap().starts_with("cpu-"));
        let metrics = cpu.metrics();
        assert_eq!((metrics.expired, metrics.suspended), (1, 0));
    }
}

/// A future that is in a step at its deadline is dropped at the end of that.
#[test]
fn a_running_future_ends_at_its_next_wait() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let cpu = lanes.cpu.handle();
        let permit = cpu
            .try_admit()
            .unwrap()
            .with_deadline(Instant::now() + LATER);
        let task = permit.spawn(async {
            while twolane::checkpoint().is_ok() {
                std::thread::yield_now();
            }
            std::future::pending::<()>().await;
        });
        assert!(task.wait().unwrap_err().is_expired());
        assert_eq!(cpu.metrics().expired, 1);
    }
}

#[test]
fn a_wait_for_a_place_ends_with_it_and_loses_none() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes_with(backend, 1, |builder| {
            builder.queue_limit(Priority::Normal, 1)
        });
        let cpu = lanes.cpu.handle();
        let held = cpu.try_admit().unwrap();
        let late = cpu.admit().with_deadline(Instant::now() + SOON);
        assert!(late.wait().unwrap_err().is_expired());
        drop(held);
        assert!(cpu.try_admit().is_ok());
        assert_eq!(cpu.metrics().rejected, 1);
    }
}

/// The warden sleeps until the first one, and is woken by one that is earlier.
#[test]
fn an_earlier_one_that_comes_later_is_in_time() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let cpu = lanes.cpu.handle();
        let pending = |after| {
            let permit = cpu.try_admit().unwrap();
            let permit = permit.with_deadline(Instant::now() + after);
            permit.spawn(std::future::pending::<()>())
        };
        let patient = pending(NEVER);
        assert!(pending(SOON).wait().unwrap_err().is_expired());
        assert!(pending(SOON).wait().unwrap_err().is_expired());
        assert!(!patient.is_finished());
        // The earlier of two holds.
        let permit = cpu.try_admit().unwrap();
        let permit = permit.with_deadline(Instant::now() + SOON);
        let permit = permit.with_deadline(Instant::now() + NEVER);
        let task = permit.spawn(std::future::pending::<()>());
        assert!(task.wait().unwrap_err().is_expired());
        drop(patient);
    }
}

/// A detached job that its own deadline ends is no loss to be told of, and one
/// that has ended before is left alone.
#[test]
fn one_that_comes_after_the_end_changes_nothing() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let cpu = lanes.cpu.handle();
        let permit = cpu
            .try_admit()
            .unwrap()
            .with_deadline(Instant::now() + LATER);
        let done = permit.spawn_cpu(|| 42);
        // Later than its deadline, by the same clock.
        let permit = cpu.try_admit().unwrap();
        let permit = permit.with_deadline(Instant::now() + LATER + SOON);
        let after = permit.spawn(std::future::pending::<()>());
        assert!(after.wait().unwrap_err().is_expired());
        assert_eq!(done.wait().unwrap(), 42);
        assert_eq!((cpu.metrics().completed, cpu.metrics().expired), (1, 1));
    }
}
