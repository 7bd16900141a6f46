//! Short jobs first: at `Priority::Normal` a job that is known to be short waits for no long one.
//!
//! The CPU time of its call site's samples tells how long a step is (`call_sites/length.rs`).
//! A push puts a short job into a queue of its own (`queue.rs`), which `Normal`'s threads pop
//! first.
//!
//! **If these are all in steps that are not known to be short, `High`'s threads help**, with
//! [`Backend::Rayon`]. `High` is for short jobs, and its threads have precedence. They pop
//! `Normal`'s short jobs when `High` has none itself, and try jobs of sites that are not known yet.
//! The last thread that is free tries none, and, where jobs of `High` are submitted, takes none
//! (but where it is the only one): so what turns out to be long does not hold these up.
//! With `Backend::Runtime`, `Normal`'s own threads try unknown jobs, one at a time. All other
//! unknown jobs queue with the long ones.
//!
//! A helped job stays a job of `Normal`: its permit, its counters, its level for what it submits.
//! (Rayon's children of it belong to `High`'s pool, and are jobs of `High` in what they submit.)
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
use crate::task::{Run, Schedule, StepEnd, Worker};

/// A job out of the queue.
pub(crate) struct Popped {
    job: Arc<dyn Run>,
    role: Role,
}

impl Popped {
    pub(crate) fn role(&self) -> Role {
        self.role
    }

    /// For a worker that goes on with a job which it has not put back.
    pub(crate) fn again(job: Arc<dyn Run>, role: Role) -> Self {
        Self { job, role }
    }
}

/// How a worker runs a job.
#[derive(Clone, Copy)]
pub(crate) enum Role {
    /// It was among the short jobs, or its level does not tell them apart.
    Short,
    /// It is not known to be short.
    Long,
    /// It is a job of `Normal`, on a thread of `High`.
    Helped,
}

impl Level {
    /// Whether it tells its jobs apart.
    #[inline]
    fn sorts(&self) -> bool {
        self.priority() == Priority::Normal && self.lane().settings.short_jobs_first
    }

    #[inline]
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

    /// Queues a job that was woken in its own step. A job that yielded goes behind
    /// those that have not run yet.
    ///
    /// This notifies no worker: the caller pops the next job itself, or notifies. Nor does it check
    /// whether the lane is closed: an active worker goes on until it finds the queue empty.
    pub(crate) fn put_back(&self, Popped { job, role }: Popped, yielded: bool) {
        let queue = &self.state().queue;
        match role {
            _ if yielded => queue.push_behind(job),
            Role::Short if self.sorts() => queue.push_short(job),
            _ => queue.push(job),
        }
    }

    /// For a worker.
    pub(crate) fn pop(&self) -> Option<Popped> {
        match self.state().queue.pop() {
            Some((job, is_short)) => Some(self.popped(job, is_short)),
            None if self.priority() == Priority::High => self.pop_to_help(),
            None => None,
        }
    }

    fn popped(&self, job: Arc<dyn Run>, is_short: bool) -> Popped {
        let role = match self.sorts() && !is_short {
            true => Role::Long,
            false => Role::Short,
        };
        Popped { job, role }
    }

    /// Whether an unknown job may be tried: by a thread of `High` that is not the last free one, or
    /// by `Normal`'s own threads, one at a time.
    fn may_try(&self) -> bool {
        let (state, settings) = (self.state(), &self.lane().settings);
        match settings.high_helps() {
            true => self.may_help(state, state.queue.short(), Length::Unknown),
            false => !state.queue.has_short(),
        }
    }

    /// How many threads of `High` may run jobs of `Normal`. One stays free for `High`'s own jobs,
    /// if it has had any, and is not the only one; and one for what may come, if these are not
    /// known to be short.
    fn most_helped(&self, length: Length) -> usize {
        let threads = self.lane().settings.threads;
        let is_used = self.lane().level_state(Priority::High).counters.is_used();
        let is_one_free = length == Length::Unknown || (is_used && threads > 1);
        threads - usize::from(is_one_free)
    }

    /// Whether a thread of `High` may take one more job of `normal`, beside so many that wait for
    /// one.
    fn may_help(&self, normal: &LevelState, waiting: usize, length: Length) -> bool {
        let high = self.lane().level_state(Priority::High);
        let own = high.queue.len() + high.counters.running() as usize;
        own + waiting + normal.helped.load(SeqCst) < self.most_helped(length)
    }

    #[cold]
    fn pop_to_help(&self) -> Option<Popped> {
        let state = self.normal_to_help()?;
        // Counted first: of two threads that look at the same time, one sees the other.
        let helped = state.helped.fetch_add(1, SeqCst) + 1;
        let takes = |length| helped <= self.most_helped(length);
        // As after a push: `Normal`'s workers may have found the queue empty meanwhile.
        let moved = || self.with_priority(Priority::Normal).pushed(false);
        let may_help = takes(Length::Short);
        let popped = may_help.then(|| state.queue.pop_short(takes, moved));
        let Some(job) = popped.flatten() else {
            state.helped.fetch_sub(1, SeqCst);
            return None;
        };
        let role = Role::Helped;
        Some(Popped { job, role })
    }

    /// Whether this level's workers could help now.
    #[inline]
    pub(super) fn has_others_short(&self) -> bool {
        self.priority() == Priority::High && self.normal_to_help().is_some()
    }

    /// For `High`: `Normal`, if it has a short job that a thread of this level should take.
    #[cold]
    fn normal_to_help(&self) -> Option<&LevelState> {
        let helps = self.lane().settings.high_helps();
        let normal = helps.then(|| self.lane().level_state(Priority::Normal))?;
        let is_stuck = normal.is_stuck(&self.lane().settings);
        let may_help = || self.may_help(normal, 0, Length::Short);
        (is_stuck && normal.queue.has_short() && may_help()).then_some(normal)
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.state().is_stuck(&self.lane().settings)
    }

    /// Call after a push of a short job, or where the last thread begins a long step, and a fence.
    pub(super) fn call_for_help(&self) {
        let helps = self.lane().settings.high_helps();
        if !helps || !self.may_help(self.state(), 0, Length::Short) {
            return;
        }
        let high = self.with_priority(Priority::High);
        if let Some(workers) = high.workers() {
            workers.notify(&high);
        }
    }

    /// Runs a step of a job that `worker` has popped.
    #[inline]
    pub(crate) fn run<'a>(&'a self, popped: Popped, worker: &mut Worker<'a>) -> StepEnd {
        match popped.role {
            Role::Short => popped.job.run(worker),
            Role::Long => self.run_long(popped.job, worker),
            Role::Helped => self.run_for_normal(popped.job),
        }
    }

    fn run_long<'a>(&'a self, job: Arc<dyn Run>, worker: &mut Worker<'a>) -> StepEnd {
        self.begin_long_step(worker);
        let end = job.run(worker);
        worker.leaves();
        end
    }

    #[cold]
    fn run_for_normal(&self, job: Arc<dyn Run>) -> StepEnd {
        let normal = self.with_priority(Priority::Normal);
        let helper = &mut normal.helper();
        helper.counted_by = Some(&normal.state().helped);
        let _helps = thread::help();
        let end = job.run(helper);
        helper.leaves();
        match end {
            // Also if it has yielded. `Normal`'s threads are all busy.
            StepEnd::Requeue { job, .. } => {
                normal.enqueue(job);
                StepEnd::Suspended
            }
            end => end,
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
