//! What is not wanted any more after its deadline, and where is that seen?

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use crate::support::{self, BOTH, Dropped, Stuck, lanes, lanes_with, time_limit};
use tokio::sync::oneshot;
use tokio::time::timeout_at;
use twolane::{Handle, Permit, Priority};

/// For what is to be submitted by then.
const SOON: Duration = Duration::from_millis(250);
/// For a job that is to have started, or ended, by then.
const LATER: Duration = Duration::from_millis(1500);
const NEVER: Duration = Duration::from_secs(3600);

/// A permit whose deadline comes after so long, and that deadline.
fn until(cpu: &Handle, after: Duration) -> (Permit, Instant) {
    let deadline = Instant::now() + after;
    (cpu.try_reserve().unwrap().with_deadline(deadline), deadline)
}

fn let_pass(deadline: Instant) {
    while Instant::now() < deadline {
        std::thread::yield_now();
    }
}

/// An awaiter may hear of a deadline a moment before the counters do. What the only
/// thread runs next comes after that.
fn next_job(cpu: &Handle) {
    cpu.spawn_cpu(|| ()).wait().unwrap();
}

#[test]
fn a_queued_job_is_told_in_its_turn_and_never_runs() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let cpu = lanes.cpu.handle();
        let (stuck, let_go) = Stuck::start(&cpu).split();
        let ran = Arc::new(AtomicBool::new(false));
        let (by_closure, by_future) = (ran.clone(), ran.clone());
        let (dropped, drops) = mpsc::channel();
        let captured = [(); 2].map(|()| Dropped(dropped.clone()));
        let [in_closure, in_future] = captured;
        let (permit, _) = until(&cpu, SOON);
        let closure = permit.spawn_cpu(move || {
            let _captured = in_closure;
            by_closure.store(true, SeqCst);
        });
        let (permit, deadline) = until(&cpu, SOON);
        let future = permit.spawn(async move {
            let _captured = in_future;
            by_future.store(true, SeqCst);
        });
        let_pass(deadline);
        // Its thread is not free: it is queued still.
        assert!(!closure.is_finished() && !future.is_finished());
        assert_eq!((cpu.metrics().queued, cpu.metrics().expired), (2, 0));
        let_go.send(()).unwrap();
        stuck.wait().unwrap();
        for late in [closure, future] {
            let error = late.wait().unwrap_err();
            assert!(error.is_expired() && !error.is_cancelled(), "{error}");
            assert!(drops.recv().unwrap().starts_with("cpu-"));
        }
        assert!(!ran.load(SeqCst));
        next_job(&cpu);
        let metrics = cpu.metrics();
        assert_eq!((metrics.expired, metrics.completed), (2, 2));
        assert_eq!((metrics.queued, metrics.running), (0, 0));
    }
}

/// The only thread is stuck, so it is not the queue that tells.
#[test]
fn a_timeout_around_the_task_tells_at_the_minute() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let cpu = lanes.cpu.handle();
        let (stuck, let_go) = Stuck::start(&cpu).split();
        let ran = Arc::new(AtomicBool::new(false));
        let by_job = ran.clone();
        let (permit, deadline) = until(&cpu, SOON);
        let late = permit.spawn_cpu(move || by_job.store(true, SeqCst));
        let told = lanes
            .io
            .block_on(async { timeout_at(deadline.into(), late).await });
        assert!(told.is_err());
        let_go.send(()).unwrap();
        stuck.wait().unwrap();
        next_job(&cpu);
        assert!(!ran.load(SeqCst));
        // Of the two reasons the first counts: the timeout has dropped the task.
        let metrics = cpu.metrics();
        assert_eq!((metrics.cancelled, metrics.expired), (1, 0));
    }
}

#[test]
fn one_that_has_passed_is_refused() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let cpu = lanes.cpu.handle();
        let (dropped, drops) = mpsc::channel();
        let captured = Dropped(dropped);
        let (permit, _) = until(&cpu, Duration::ZERO);
        let task = permit.spawn_cpu(move || drop(captured));
        assert!(task.is_finished());
        assert_eq!(drops.recv().unwrap(), support::thread_name());
        let error = task.wait().unwrap_err();
        assert!(error.is_expired(), "{error}");
        let (permit, _) = until(&cpu, Duration::ZERO);
        assert!(permit.spawn(async {}).wait().unwrap_err().is_expired());
        let (permit, _) = until(&cpu, Duration::ZERO);
        let task = permit.spawn_cpu_with(|_| Ok(()));
        assert!(task.wait().unwrap_err().is_expired());
        assert_eq!((cpu.metrics().submitted, cpu.metrics().rejected), (0, 3));
    }
}

#[test]
fn a_closure_that_runs_sees_it() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let cpu = lanes.cpu.handle();
        let (permit, deadline) = until(&cpu, LATER);
        let task = permit.spawn_cpu_with(move |job| {
            let captured = job.clone();
            let elsewhere = std::thread::spawn(move || {
                while captured.checkpoint().is_ok() {
                    std::thread::yield_now();
                }
            });
            while !job.is_cancelled() {
                std::thread::yield_now();
            }
            // Not before.
            assert!(Instant::now() >= deadline);
            elsewhere.join().unwrap();
            Ok("what I have so far")
        });
        // It ended with an output all the same.
        assert_eq!(task.wait().unwrap(), "what I have so far");
        assert_eq!((cpu.metrics().completed, cpu.metrics().expired), (1, 0));
    }
}

/// It is not woken by its deadline, and not polled after it.
#[test]
fn a_suspended_future_is_dropped_when_it_is_woken() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let cpu = lanes.cpu.handle();
        let (dropped, drops) = mpsc::channel();
        let captured = Dropped(dropped);
        let (waits, is_waiting) = mpsc::channel();
        let (wake, woken) = oneshot::channel::<()>();
        let (permit, deadline) = until(&cpu, LATER);
        let task = permit.spawn(async move {
            let _captured = captured;
            waits.send(()).unwrap();
            woken.await.unwrap();
            unreachable!("it is polled after its deadline");
        });
        is_waiting.recv().unwrap();
        // After its step.
        next_job(&cpu);
        let_pass(deadline);
        assert!(!task.is_finished());
        assert_eq!(cpu.metrics().suspended, 1);
        wake.send(()).unwrap();
        assert!(task.wait().unwrap_err().is_expired());
        assert!(drops.recv().unwrap().starts_with("cpu-"));
        next_job(&cpu);
        let metrics = cpu.metrics();
        assert_eq!((metrics.expired, metrics.suspended), (1, 0));
        assert_eq!((metrics.panicked, metrics.queued), (0, 0));
    }
}

/// A future that is in a step at its deadline is dropped before the next.
#[test]
fn a_running_future_ends_at_its_next_wait() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let cpu = lanes.cpu.handle();
        let (permit, deadline) = until(&cpu, LATER);
        let task = permit.spawn(async move {
            let_pass(deadline);
            tokio::task::yield_now().await;
            unreachable!("it is polled after its deadline");
        });
        assert!(task.wait().unwrap_err().is_expired());
        next_job(&cpu);
        assert_eq!((cpu.metrics().expired, cpu.metrics().panicked), (1, 0));
    }
}

/// And one that does not wait any more has its output.
#[test]
fn a_step_that_ends_a_future_counts() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let cpu = lanes.cpu.handle();
        let (permit, deadline) = until(&cpu, LATER);
        let task = permit.spawn(async move {
            let_pass(deadline);
            42
        });
        assert_eq!(task.wait().unwrap(), 42);
        assert_eq!((cpu.metrics().expired, cpu.metrics().completed), (0, 1));
    }
}

#[test]
fn a_timeout_around_a_wait_for_a_place_loses_none() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes_with(backend, 1, |builder| {
            builder.queue_limit(Priority::Normal, 1)
        });
        let cpu = lanes.cpu.handle();
        let held = cpu.try_reserve().unwrap();
        let deadline = Instant::now() + SOON;
        let late = lanes
            .io
            .block_on(async { timeout_at(deadline.into(), cpu.reserve()).await });
        assert!(late.is_err());
        drop(held);
        assert!(cpu.try_reserve().is_ok());
        assert_eq!(cpu.metrics().rejected, 1);
    }
}

/// In whichever order they are set.
#[test]
fn the_earlier_of_two_holds() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let cpu = lanes.cpu.handle();
        let patient = until(&cpu, NEVER).0.spawn(std::future::pending::<()>());
        let (permit, passed) = until(&cpu, Duration::ZERO);
        let permit = permit.with_deadline(passed + NEVER);
        assert!(permit.spawn_cpu(|| ()).wait().unwrap_err().is_expired());
        let permit = until(&cpu, NEVER).0.with_deadline(passed);
        assert!(permit.spawn_cpu(|| ()).wait().unwrap_err().is_expired());
        assert_eq!(until(&cpu, NEVER).0.spawn_cpu(|| 1).wait().unwrap(), 1);
        assert!(!patient.is_finished());
    }
}

/// One that has ended before is left alone, and so is what it left behind.
#[test]
fn one_that_comes_after_the_end_changes_nothing() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let cpu = lanes.cpu.handle();
        let (permit, deadline) = until(&cpu, LATER);
        let done = permit.spawn_cpu_with(|job| Ok(job.clone()));
        while !done.is_finished() {
            std::thread::yield_now();
        }
        let_pass(deadline);
        let job = done.wait().unwrap();
        assert_eq!(job.checkpoint(), Ok(()));
        assert_eq!((cpu.metrics().completed, cpu.metrics().expired), (1, 0));
    }
}

/// Whichever way its deadline ends it.
#[test]
fn an_expired_job_gives_its_place_back() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes_with(backend, 1, |builder| {
            builder.queue_limit(Priority::Normal, 1)
        });
        let cpu = lanes.cpu.handle();
        // Between two polls.
        let (permit, deadline) = until(&cpu, LATER);
        let task = permit.spawn(async move {
            let_pass(deadline);
            tokio::task::yield_now().await;
        });
        assert!(task.wait().unwrap_err().is_expired());
        let next = cpu.reserve().wait().unwrap();
        assert_eq!(next.spawn_cpu(|| 1).wait().unwrap(), 1);
        // At the submission.
        let (permit, _) = until(&cpu, Duration::ZERO);
        assert!(permit.spawn_cpu(|| ()).wait().unwrap_err().is_expired());
        assert!(cpu.try_reserve().is_ok());
    }
}

/// All that a handle with a deadline submits has it, and the earlier one of two holds.
#[test]
fn a_handle_gives_it_to_each_of_its_jobs() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes_with(backend, 1, |builder| {
            builder.queue_limit(Priority::Normal, 2)
        });
        let cpu = lanes.cpu.handle();
        let late = cpu.with_deadline(Instant::now());
        let late = late.with_deadline(Instant::now() + NEVER).with_name("late");
        assert!(late.spawn_cpu(|| ()).wait().unwrap_err().is_expired());
        assert!(
            late.spawn_cpu_with(|_| Ok(()))
                .wait()
                .unwrap_err()
                .is_expired()
        );
        assert!(late.spawn(async {}).wait().unwrap_err().is_expired());
        let rejected = late.try_spawn_cpu(|| 6).unwrap_err();
        assert!(rejected.cause().is_expired());
        assert_eq!(rejected.into_inner()(), 6);
        let rejected = late.try_spawn_cpu_with(|_| Ok(7)).unwrap_err();
        assert!(rejected.cause().is_expired());
        let by_permit = late.try_reserve().unwrap().spawn_cpu(|| ());
        assert!(by_permit.wait().unwrap_err().is_expired());
        let by_permit = late.reserve().wait().unwrap().spawn(async {});
        assert!(by_permit.wait().unwrap_err().is_expired());
        // At another priority, too. None of them keeps a permit.
        let high = late.with_priority(Priority::High);
        assert!(high.spawn_cpu(|| ()).wait().unwrap_err().is_expired());
        assert_eq!(cpu.metrics().permits_in_use, 0);
        // What has begun submits without it.
        let soon = cpu.with_deadline(Instant::now() + LATER);
        let nested = soon.spawn_cpu(|| {
            let_pass(Instant::now() + LATER);
            twolane::spawn_cpu(|| 8)
        });
        let nested = nested.wait().unwrap();
        assert_eq!(nested.wait().unwrap(), 8, "{backend:?}");
    }
}
