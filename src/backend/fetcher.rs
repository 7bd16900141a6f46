//! The task of the dedicated runtime that takes jobs out of the lane's queue and
//! runs them. How many there are, and who spawns them: `relay.rs`.
//!
//! A fetcher runs one job in each of its turns: what that has woken or spawned on
//! this thread is Tokio's to run before the next, and each job finds Tokio's
//! budget as a task does. If there are more, it waits for another turn; that
//! costs a trip through Tokio's queue, but no new task. A future that has to wait
//! it *adopts*: it is polled with this task's own waker, so that Tokio schedules the
//! job as any of its own.
//!
//! An adopted job that never waits for long is always in Tokio's queues, and
//! fetchers from outside come in between now and then only. So after each of its
//! steps, if there are jobs, it lets a fetcher pass, for one turn.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::unconstrained;

use super::Threads;
use crate::error::Cause;
use crate::job::Run;
use crate::lane::{LEFT_BEHIND, Lane, Level};
use crate::panics;

pub(super) struct Fetcher {
    level: Level,
    adopted: Option<Arc<dyn Run>>,
    /// If there are more jobs when its turn is over.
    comes_again: bool,
}

impl Fetcher {
    /// It waits, by the relay's book.
    pub(super) fn new(level: Level, comes_again: bool) -> Self {
        Self {
            level,
            adopted: None,
            comes_again,
        }
    }
}

impl Future for Fetcher {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self {
            level,
            adopted,
            comes_again,
        } = &mut *self;
        let Some(Threads::Runtime(runtime)) = level.threads() else {
            unreachable!("fetchers are spawned by the runtime backend");
        };
        if let Some(job) = adopted.take() {
            *adopted = run(level, job, false, cx);
            if level.has_queued() {
                runtime.let_pass(level);
            }
        } else {
            runtime.relay.begin_turn();
            let Some(job) = level.pop() else {
                return Poll::Ready(());
            };
            // Now: what this job does may take long.
            if level.has_queued() {
                runtime.kick(level);
            }
            *adopted = run(level, job, true, cx);
            if adopted.is_none() && *comes_again && level.has_queued() {
                runtime.relay.wait();
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        match adopted {
            Some(_) => Poll::Pending,
            None => Poll::Ready(()),
        }
    }
}

/// One step of a job. The answer is the job, if it has not ended: to be adopted.
fn run(
    level: &Level,
    job: Arc<dyn Run>,
    is_new: bool,
    cx: &mut Context<'_>,
) -> Option<Arc<dyn Run>> {
    level.pause_for_quota(&*job);
    let Some(link) = job.link() else {
        run_closure(level, job, cx);
        return None;
    };
    // A future is woken by this task's own waker, so it never asks to go on.
    level.step(job.clone(), Some(cx.waker()));
    if is_new && !job.has_ended() {
        // For a thread that closes it while it rests.
        link.driver.register(cx.waker());
    }
    if !job.has_ended() {
        return Some(job);
    }
    // A thread that has closed it before it found the waker relies on this task.
    // What goes with the job is foreign code.
    panics::run_hook(LEFT_BEHIND, move || job.discard());
    None
}

/// A closure can't give way: if it blocks on one of Tokio's resources, and has used
/// up the budget that Tokio gives a task for one poll, it would never get it.
fn run_closure(level: &Level, job: Arc<dyn Run>, cx: &mut Context<'_>) {
    let mut job = Some(job);
    let step = poll_fn(|_| Poll::Ready(job.take().map(|job| level.step(job, None))));
    let _ = pin!(unconstrained(step)).poll(cx);
}

impl Drop for Fetcher {
    /// Tokio lets go of its tasks when the runtime ends.
    fn drop(&mut self) {
        if let Some(job) = self.adopted.take() {
            job.close(Cause::ShutDown);
            Lane::discard(vec![job]);
        }
    }
}
