//! Short jobs first: at `Priority::Normal` a job that is known to be short waits for no long one.
//!
//! The CPU time of its call site's samples tells how long a step is (`call_sites/length.rs`).
//! A push puts a short job into a queue of its own (`queue.rs`), which `Normal`'s threads pop
//! first.
//!
//! **If these are all in steps that are not known to be short, `High`'s threads help**, with
//! [`Backend::Rayon`]. `High` is for short jobs, and its threads have precedence. They pop
//! `Normal`'s short jobs when `High` has none itself. While they help, they also try jobs of sites
//! that are not known yet, as long as one of them stays free: a try that turns out to be long does
//! not hold `High` up. With `Backend::Runtime`, `Normal`'s own threads try them, one at a time. All
//! other unknown jobs queue with the long ones.
//!
//! A helped job stays a job of `Normal`: its permit, its counters, its level for what it submits.
//! The helper counts on a page of its own there. If the job is woken in its own step, it goes back
//! to `Normal`'s queue.
//!
//! **Who calls for help:** a push of a short job that finds all threads in long steps, and the
//! thread that begins the last such step while short jobs are queued. Each changes its own word,
//! and looks at the other's after a `SeqCst` fence, so one of the two sees the other. No job
//! depends on it: each stays in `Normal`'s queue, and `Normal`'s workers are notified as ever.
//!
//! **Order.** The jobs of one site begin in the order in which they were pushed, as long as what is
//! known of the site does not change: a site that becomes short passes its own jobs among the long
//! ones.

use std::sync::Arc;

use super::level::LevelState;
use super::{Level, ThreadSettings, thread};
use crate::backend::Backend;
use crate::metrics::call_sites::Length;
use crate::priority::Priority;
use crate::sync::{Ordering::SeqCst, fence};
use crate::task::{Run, StepEnd, Worker};

/// A job out of the queue.
pub(crate) struct Popped {
    job: Arc<dyn Run>,
    role: Role,
}

#[derive(Clone, Copy)]
enum Role {
    Plain,
    /// It is not known to be short.
    Long,
    /// It is a job of `Normal`, on a thread of `High`.
    Helped,
}

impl Level {
    /// Whether it tells its jobs apart.
    fn sorts(&self) -> bool {
        self.priority() == Priority::Normal && self.lane().settings.short_jobs_first
    }

    pub(super) fn length_of_site(&self) -> Length {
        match self.sorts() {
            true => self.state().sites.length(self.site),
            false => Length::Long,
        }
    }

    /// Returns whether it went to the short ones.
    pub(super) fn push(&self, job: Arc<dyn Run>) -> bool {
        let is_short = match job.length() {
            Length::Short => true,
            Length::Unknown => self.is_stuck() && self.may_try(),
            Length::Long => false,
        };
        match is_short {
            true => self.state().queue.push_short(job),
            false => self.state().queue.push(job),
        }
        is_short
    }

    /// For a worker.
    pub(crate) fn pop(&self) -> Option<Popped> {
        match self.state().queue.pop() {
            Some((job, is_short)) => Some(self.popped(job, is_short)),
            None => self.pop_to_help(),
        }
    }

    /// For a worker that goes on with a job which it has not put back.
    pub(crate) fn popped_again(&self, job: Arc<dyn Run>) -> Popped {
        let is_short = job.length() == Length::Short;
        self.popped(job, is_short)
    }

    fn popped(&self, job: Arc<dyn Run>, is_short: bool) -> Popped {
        let role = match self.sorts() && !is_short {
            true => Role::Long,
            false => Role::Plain,
        };
        Popped { job, role }
    }

    /// Whether an unknown job may be tried: one thread of `High` stays free, or `Normal`'s own
    /// threads try it, one at a time.
    fn may_try(&self) -> bool {
        if !self.lane().settings.high_helps() {
            return !self.state().queue.has_short();
        }
        let high = self.lane().level_state(Priority::High);
        let own = high.queue.len() + high.counters.running() as usize;
        let helped = self.state().queue.short() + self.state().helped.load(SeqCst);
        own + helped + 1 < self.lane().settings.threads
    }

    fn pop_to_help(&self) -> Option<Popped> {
        let normal = self.stuck_normal()?;
        let (job, _) = normal.queue.pop_short()?;
        let role = Role::Helped;
        Some(Popped { job, role })
    }

    /// Whether this level's workers could help now.
    pub(super) fn has_others_short(&self) -> bool {
        self.stuck_normal()
            .is_some_and(|normal| normal.queue.has_short())
    }

    fn stuck_normal(&self) -> Option<&LevelState> {
        let helps = self.priority() == Priority::High && self.lane().settings.high_helps();
        let normal = helps.then(|| self.lane().level_state(Priority::Normal))?;
        normal.is_stuck(&self.lane().settings).then_some(normal)
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.state().is_stuck(&self.lane().settings)
    }

    /// Call after a push of a short job, or where the last thread begins a long step, and a fence.
    pub(super) fn call_for_help(&self) {
        if !self.lane().settings.high_helps() {
            return;
        }
        let high = self.with_priority(Priority::High);
        if let Some(workers) = high.workers() {
            workers.notify(&high);
        }
    }

    /// Runs a step of a job that `worker` has popped.
    pub(crate) fn run<'a>(&'a self, popped: Popped, worker: &mut Worker<'a>) -> StepEnd {
        let Popped { job, role } = popped;
        match role {
            Role::Plain => job.run(worker),
            Role::Long => {
                self.begin_long_step(worker);
                let end = job.run(worker);
                worker.leaves();
                end
            }
            Role::Helped => {
                let normal = self.with_priority(Priority::Normal);
                let helper = &mut normal.helper();
                helper.enters(&normal.state().helped);
                let _helps = thread::help();
                let end = job.run(helper);
                helper.leaves();
                if let StepEnd::Requeue { job, .. } = end {
                    // Also if it has yielded: behind the long ones no thread may come to it.
                    normal.push(job);
                    fence(SeqCst);
                    if let Some(workers) = normal.workers() {
                        workers.notify(&normal);
                    }
                    return StepEnd::Suspended;
                }
                end
            }
        }
    }

    fn begin_long_step<'a>(&'a self, worker: &mut Worker<'a>) {
        let state = self.state();
        worker.enters(&state.long_steps);
        fence(SeqCst);
        if state.queue.has_short() && self.is_stuck() {
            self.call_for_help();
        }
    }
}

impl LevelState {
    /// Whether no thread of it comes to a short job soon.
    fn is_stuck(&self, settings: &ThreadSettings) -> bool {
        self.long_steps.load(SeqCst) >= settings.threads
    }
}

impl ThreadSettings {
    /// With `Backend::Runtime` no thread helps. What a job spawns with Tokio goes to the runtime of
    /// `Normal`, and before the next job if a thread of that runtime spawns it.
    fn high_helps(&self) -> bool {
        self.short_jobs_first && self.backend == Backend::Rayon
    }
}
