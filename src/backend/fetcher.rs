//! The task of the dedicated runtime that takes jobs out of the lane's queue and
//! runs them. How many there are, and who spawns them: `relay.rs`.
//!
//! A closure ends with its step, and so do many futures; a fetcher runs them one
//! after the other, as long as its [`TURN`] lasts. A future that has to wait it
//! *adopts*: from then on the job's waker wakes this task, which does nothing
//! else any more, so that Tokio schedules the job as any of its own.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::task::unconstrained;

use super::Threads;
use super::runtime::CpuTokio;
use crate::job::state::Cause;
use crate::job::{After, Run, completion};
use crate::lane::{Lane, Level};

/// Then Tokio's other tasks shall have theirs: some, of an adopted job each, may
/// have less to do. Many times what it costs to wait for the next turn.
const TURN: Duration = Duration::from_micros(20);

pub(super) struct Fetcher {
    level: Level,
    adopted: Option<Arc<dyn Run>>,
}

impl Fetcher {
    /// It waits, by the relay's book.
    pub(super) fn new(level: Level) -> Self {
        Self {
            level,
            adopted: None,
        }
    }

    /// None after a shutdown.
    fn next(&self, runtime: &CpuTokio) -> Option<Arc<dyn Run>> {
        let job = self.level.pop()?;
        // Now: what this job does may take long.
        if self.level.has_queued() {
            runtime.kick(&self.level);
        }
        Some(job)
    }

    /// A step of `job`, which ends with it or is adopted.
    fn run(&mut self, job: Arc<dyn Run>, cx: &mut Context<'_>) {
        self.level.pause_for_quota(&*job);
        if let Some(link) = job.link() {
            link.driver.register(cx.waker());
            step(&self.level, &job, cx);
        } else {
            // Of Tokio's budget each task has one, and this one is not the
            // job's: what blocks on one of Tokio's resources there would find it
            // used up, and never get it.
            let closure = pin!(unconstrained(poll_fn(|cx| {
                step(&self.level, &job, cx);
                Poll::Ready(())
            })));
            let _: Poll<()> = closure.poll(cx);
        }
        if job.has_ended() {
            // It may have been closed just now, after its step: whoever did that
            // has woken this task in vain.
            job.discard();
            self.adopted = None;
        } else {
            self.adopted = Some(job);
        }
    }
}

fn step(level: &Level, job: &Arc<dyn Run>, cx: &Context<'_>) {
    match level.step(job.clone()) {
        After::Nothing => {}
        After::Wake(waker) => completion::wake(Some(waker)),
        After::Again { .. } => cx.waker().wake_by_ref(),
    }
}

impl Future for Fetcher {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(job) = self.adopted.clone() {
            self.run(job, cx);
            return match self.adopted {
                Some(_) => Poll::Pending,
                None => Poll::Ready(()),
            };
        }
        let level = self.level.clone();
        let Some(Threads::Runtime(runtime)) = level.threads() else {
            unreachable!("fetchers are spawned by the runtime backend");
        };
        runtime.relay.begin_turn();
        let start = Instant::now();
        while let Some(job) = self.next(runtime) {
            self.run(job, cx);
            if self.adopted.is_some() {
                return Poll::Pending;
            }
            if start.elapsed() >= TURN && level.has_queued() {
                runtime.relay.wait();
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }
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
