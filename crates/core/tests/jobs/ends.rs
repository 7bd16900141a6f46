//! How does a job end that is cancelled or late? Which end it has, when its task says so, its
//! permit and the counters are `model`'s, call by call. Here is what the model does not see: where
//! the captures go, what others see through the job's context, each call that takes a deadline.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use crate::support::wait::wait_until;
use crate::support::{self, Dropped, Stuck, lanes, lanes_with, nothing, stuck_in_a_poll};
use futures::FutureExt;
use twolane_core::{Cancelled, Handle, JobContext, JoinErrorKind, Priority, Task};

fn is_expired<T>(task: Task<T>) -> bool {
    task.wait()
        .is_err_and(|error| error.kind() == JoinErrorKind::Expired)
}

/// A job that drops what it has captured when it runs, which none of these does.
fn submit(cpu: &Handle, is_closure: bool, captured: Dropped) -> Task<()> {
    match is_closure {
        true => cpu.spawn_cpu(move || drop(captured)),
        false => cpu.spawn(async move { drop(captured) }),
    }
}

/// With async-task the awaiter of a cancelled job hangs behind the queue: here the only thread is
/// stuck, and the awaiter is told nevertheless. What the job has captured is dropped by the lane,
/// in its turn.
#[test]
fn a_queued_job_that_ends_is_dropped_on_its_lane() {
    for is_closure in [true, false] {
        let (cpu, _lanes) = lanes(1).and_handle();
        let stuck = Stuck::start(&cpu);
        let (dropped, drops) = mpsc::channel();
        let captured = || Dropped(dropped.clone());
        let aborted = submit(&cpu, is_closure, captured());
        aborted.abort();
        assert!(aborted.is_finished());
        assert!(aborted.wait().unwrap_err().is_cancelled());
        drop(submit(&cpu, is_closure, captured()));
        assert!(drops.try_recv().is_err());
        // A submission after its deadline is refused: then once more, with more time.
        let times = [1, 100, 10_000].map(Duration::from_millis);
        let late = times.into_iter().find_map(|time| {
            let deadline = Instant::now() + time;
            let late = submit(&cpu.with_deadline(deadline), is_closure, captured());
            match late.is_finished() {
                true => assert_eq!(drops.recv().unwrap(), support::thread_name()),
                false => return Some((late, deadline)),
            }
            None
        });
        let (late, deadline) = late.expect("it is never taken on");
        wait_until(|| Instant::now() > deadline);
        assert!(!late.is_finished(), "its thread is not free to tell");
        stuck.end();
        assert!(is_expired(late));
        for on in drops.iter().take(3) {
            assert!(on.starts_with("cpu-"), "{on}");
        }
    }
}

/// Waits in its destructor until it is let go, and then tells that it is gone.
struct DropsLate {
    let_go: mpsc::Receiver<()>,
    is_gone: Arc<AtomicBool>,
}

impl Drop for DropsLate {
    fn drop(&mut self) {
        self.let_go.recv().unwrap();
        self.is_gone.store(true, SeqCst);
    }
}

/// Code that frees a file or a lock by an abort relies on it. The task ended before: in 500 of 500
/// cases where a destructor took a millisecond.
#[test]
fn what_has_begun_is_gone_when_its_aborted_task_ends() {
    for is_suspended in [true, false] {
        let (cpu, _lanes) = lanes(1).and_handle();
        let (go, let_go) = mpsc::channel();
        let is_gone = Arc::<AtomicBool>::default();
        let held = DropsLate {
            let_go,
            is_gone: is_gone.clone(),
        };
        let (mut task, end_step) = stuck_in_a_poll(&cpu, held);
        if is_suspended {
            end_step.send(()).unwrap();
            wait_until(|| cpu.metrics().suspended == 1);
        }
        task.abort();
        drop(end_step);
        assert!((&mut task).now_or_never().is_none());
        assert!(!task.is_finished());
        go.send(()).unwrap();
        assert!(task.wait().unwrap_err().is_cancelled());
        assert!(is_gone.load(SeqCst));
    }
}

/// The children of a cancelled job, on whatever worker, see it through what they captured.
#[test]
fn rayon_children_see_the_cancel_through_their_context() {
    let lanes = lanes(2);
    let (started, running) = mpsc::channel();
    let task = lanes.cpu.handle().spawn_cpu_with(move |job| {
        let sees = || wait_until(|| job.checkpoint().is_err());
        started.send(()).unwrap();
        rayon::join(sees, sees);
        Ok(())
    });
    running.recv().unwrap();
    task.abort();
    task.wait().unwrap();
}

/// The reason is that of the checkpoint which failed, also in a function that other errors of
/// jobs come out of.
#[test]
fn the_error_says_why() {
    fn parse(job: &JobContext) -> Result<u8, twolane_core::JoinError> {
        job.checkpoint()?;
        Ok(7)
    }
    let lanes = lanes(1);
    let (told, tells) = mpsc::channel::<(Cancelled, String)>();
    let (started, running) = mpsc::channel();
    let task = lanes.cpu.handle().spawn_cpu_with(move |job| {
        assert_eq!(parse(job).unwrap(), 7);
        started.send(()).unwrap();
        wait_until(|| job.checkpoint().is_err());
        let error = parse(job).unwrap_err().to_string();
        let why = job.checkpoint().unwrap_err();
        told.send((why, error)).unwrap();
        job.checkpoint()?;
        Ok(())
    });
    running.recv().unwrap();
    let shutdown = lanes.cpu.shutdown();
    let (why, error) = tells.recv().unwrap();
    assert_eq!(
        why.to_string(),
        "the job is to end: the CPU lane was shut down, or its CpuRuntime dropped, before the job ended"
    );
    assert!(error.contains("shut down"), "{error}");
    let error = task.wait().unwrap_err();
    assert_eq!(error.kind(), JoinErrorKind::Shutdown);
    assert!(error.is_unavailable());
    shutdown.wait();
}

/// A job's context may be held for longer than the job runs. One that has ended can't be cancelled
/// any more, nor be late or shut down, so what the context says then stays. (A cancel that meets the end is
/// `loom`'s: `a_cancel_against_the_end`.)
#[test]
fn what_a_finished_job_left_behind_is_not_told_to_end() {
    for takes_output in [true, false] {
        let lanes = lanes(1);
        // A submission after its deadline is refused: then once more, with more time.
        let times = [100, 10_000].map(Duration::from_millis);
        let ended = times.into_iter().find_map(|time| {
            let deadline = Instant::now() + time;
            let (left, leaves) = mpsc::channel();
            let cpu = lanes.cpu.handle().with_deadline(deadline);
            let task = cpu.spawn_cpu_with(move |job| {
                left.send(job.clone()).unwrap();
                Ok(())
            });
            let job = leaves.recv().ok()?;
            wait_until(|| task.is_finished());
            Some((task, job, deadline))
        });
        let (mut task, job, deadline) = ended.expect("it never runs");
        let abort = task.abort_handle();
        if takes_output {
            lanes.io.block_on(&mut task).unwrap();
        }
        abort.abort();
        drop(task);
        wait_until(|| Instant::now() > deadline);
        lanes.cpu.shutdown().wait();
        assert_eq!(job.checkpoint(), Ok(()));
    }
}

/// Also at another priority and by another name, and none of them keeps a permit. (Each way to submit,
/// and that the earlier one of two deadlines holds: `model`.)
#[test]
fn a_handle_keeps_its_deadline_when_it_gets_a_name_and_a_priority() {
    let lanes = lanes_with(1, |lane| lane.queue_limit(Priority::High, 2));
    let late = lanes.cpu.handle().with_deadline(Instant::now());
    let late = late.with_name("late").with_priority(Priority::High);
    assert!(is_expired(late.spawn_cpu(nothing)));
    assert!(is_expired(late.try_reserve().unwrap().spawn_cpu(nothing)));
    let metrics = late.metrics();
    assert_eq!((metrics.permits_in_use, metrics.submitted), (0, 0));
}
