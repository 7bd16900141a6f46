//! What a lane with one thread has to do, by its documentation.

use std::collections::VecDeque;

use crate::calls::{Kind, Tell};
use crate::permits::{Permit, Permits};

/// How a job, or a call, ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Output,
    Panicked,
    Cancelled,
    Expired,
    ShutDown,
    QueueFull,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It waits for the thread; or for another turn on it, if it was woken.
    Queued,
    Running,
    Suspended,
    Ended(End),
}

pub(crate) struct Job {
    kind: Kind,
    pub(crate) phase: Phase,
    gate: VecDeque<Tell>,
    /// Of a future: it keeps its thread.
    blocks: bool,
    /// A step has begun.
    has_begun: bool,
    /// It has begun, and a cancel wants it to end.
    is_cancelled: bool,
    deadline_has_passed: bool,
    /// It is held until what the job has captured is dropped.
    permit: Permit,
    /// Its captures are dropped before its end is seen: an awaiter may rely on it.
    pub(crate) ended_by_itself: bool,
    /// By the lane's thread; of a job that was closed.
    pub(crate) is_discarded: bool,
    /// It was never taken on.
    pub(crate) was_refused: bool,
}

/// As in [`twolane_core::metrics::Metrics`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) submitted: u64,
    pub(crate) rejected: u64,
    pub(crate) queued: u64,
    pub(crate) running: u64,
    pub(crate) suspended: u64,
    pub(crate) completed: u64,
    pub(crate) panicked: u64,
    pub(crate) cancelled: u64,
    pub(crate) expired: u64,
    pub(crate) dropped: u64,
}

pub(crate) struct Model {
    pub(crate) permits: Permits,
    pub(crate) jobs: Vec<Job>,
    /// First in, first out, also for futures that were woken. With those that were
    /// closed meanwhile: the thread drops them in their turn.
    queue: VecDeque<usize>,
    pub(crate) running: Option<usize>,
    pub(crate) is_closed: bool,
    /// The last permit that was given back is free a moment after the job's captures
    /// are dropped.
    pub(crate) lags_behind: bool,
    ended: Counts,
}

impl Model {
    pub(crate) fn new(queue_limit: Option<usize>) -> Self {
        Self {
            permits: Permits::new(queue_limit),
            jobs: Vec::new(),
            queue: VecDeque::new(),
            running: None,
            is_closed: false,
            lags_behind: false,
            ended: Counts::default(),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut counts = self.ended;
        for job in &self.jobs {
            *match job.phase {
                Phase::Queued => &mut counts.queued,
                Phase::Running => &mut counts.running,
                Phase::Suspended => &mut counts.suspended,
                Phase::Ended(_) => continue,
            } += 1;
        }
        counts
    }

    // The way in.

    fn refusal(&self, is_late: bool) -> Option<End> {
        let shut_down = self.is_closed.then_some(End::ShutDown);
        shut_down.or(is_late.then_some(End::Expired))
    }

    /// `is_late`: by a handle with a deadline that has passed, which is looked at last.
    pub(crate) fn enter(&mut self, is_late: bool) -> Result<Permit, End> {
        let mut entered = self.permits.try_reserve();
        if let (Ok(permit), true) = (&entered, is_late) {
            self.permits.give_back(*permit);
            entered = Err(End::Expired);
        }
        self.count_refused(&entered);
        entered
    }

    pub(crate) fn try_reserve(&mut self) -> Result<Permit, End> {
        let entered = self.permits.try_reserve();
        self.count_refused(&entered);
        entered
    }

    /// None: it waits, as the last waiter.
    pub(crate) fn reserve(&mut self) -> Option<Result<Permit, End>> {
        let entered = self.permits.reserve()?;
        self.count_refused(&entered);
        Some(entered)
    }

    /// As [`Permits::poll`].
    pub(crate) fn poll_waiter(
        &mut self,
        waiter: usize,
        has_permit: bool,
    ) -> Option<Result<Permit, End>> {
        let entered = self.permits.poll(waiter, has_permit)?;
        self.count_refused(&entered);
        Some(entered)
    }

    pub(crate) fn drop_waiter(&mut self, waiter: usize) {
        self.count_refusal();
        self.permits.drop_waiter(waiter);
    }

    pub(crate) fn count_refusal(&mut self) {
        self.ended.rejected += 1;
    }

    fn count_refused<T>(&mut self, entered: &Result<T, End>) {
        self.ended.rejected += u64::from(entered.is_err());
    }

    // Jobs.

    /// The answer is the job's number.
    pub(crate) fn spawn(
        &mut self,
        by: Result<Permit, End>,
        kind: Kind,
        gate: Option<Tell>,
    ) -> usize {
        let job = self.jobs.len();
        let (phase, permit) = match by {
            Ok(permit) => {
                self.ended.submitted += 1;
                self.queue.push_back(job);
                (Phase::Queued, permit)
            }
            Err(refusal) => (Phase::Ended(refusal), Permit::default()),
        };
        self.jobs.push(Job {
            kind,
            phase,
            gate: gate.into_iter().collect(),
            blocks: kind != Kind::Sleepy,
            has_begun: false,
            is_cancelled: false,
            deadline_has_passed: false,
            permit,
            ended_by_itself: false,
            is_discarded: false,
            was_refused: by.is_err(),
        });
        job
    }

    /// The deadline may have passed, or the lane been closed, since it came in.
    pub(crate) fn spawn_by(
        &mut self,
        permit: Permit,
        is_late: bool,
        kind: Kind,
        gate: Option<Tell>,
    ) -> usize {
        let by = self.refusal(is_late).map_or(Ok(permit), Err);
        self.count_refused(&by);
        if by.is_err() {
            self.permits.give_back(permit);
        }
        self.spawn(by, kind, gate)
    }

    /// By the job that runs, and so without a permit.
    pub(crate) fn spawn_child(&mut self, is_late: bool, kind: Kind, gate: Option<Tell>) -> usize {
        self.spawn_by(Permit::default(), is_late, kind, gate)
    }

    /// The job whose step comes next, now.
    pub(crate) fn next(&self) -> Option<usize> {
        if self.running.is_some() {
            return None;
        }
        let mut queue = self.queue.iter().copied();
        queue.find(|job| self.may_run(*job))
    }

    /// It is in the queue, and there will be a step.
    fn may_run(&self, job: usize) -> bool {
        let job = &self.jobs[job];
        job.phase == Phase::Queued && !job.deadline_has_passed && !job.is_cancelled
    }

    /// The thread has taken it, and before it those in front of it that have no step
    /// any more.
    pub(crate) fn begin(&mut self, job: usize) {
        loop {
            let first = self.queue.pop_front().expect("the job is queued");
            if first == job {
                break;
            }
            self.end_without_step(first);
        }
        self.jobs[job].phase = Phase::Running;
        self.jobs[job].has_begun = true;
        self.running = Some(job);
        self.go_on(job);
    }

    /// The thread has nothing else to do: it comes to those that have no step any
    /// more. Whether there were some.
    pub(crate) fn end_all_without_step(&mut self) -> bool {
        let were_some = !self.queue.is_empty();
        while let Some(job) = self.queue.pop_front() {
            self.end_without_step(job);
        }
        were_some
    }

    fn end_without_step(&mut self, job: usize) {
        assert!(!self.may_run(job));
        if self.end_of(job).is_none() {
            self.jobs[job].ended_by_itself = self.jobs[job].is_cancelled;
            self.end_unless_cancelled(job, End::Expired);
        }
        self.discard(job);
    }

    fn discard(&mut self, job: usize) {
        self.jobs[job].is_discarded = true;
        let permit = std::mem::take(&mut self.jobs[job].permit);
        self.lags_behind |= !self.jobs[job].ended_by_itself && permit.held > 0;
        self.permits.give_back(permit);
    }

    pub(crate) fn tell(&mut self, job: usize, tell: Tell) {
        self.jobs[job].gate.push_back(tell);
        match self.jobs[job].phase {
            Phase::Running => self.go_on(job),
            Phase::Suspended => {
                self.jobs[job].phase = Phase::Queued;
                self.queue.push_back(job);
            }
            Phase::Queued | Phase::Ended(_) => {}
        }
    }

    /// Until it has used up what is in its gate.
    fn go_on(&mut self, job: usize) {
        let reason_to_end = self.reason_to_end(job);
        let this = &mut self.jobs[job];
        let end = loop {
            this.ended_by_itself = !this.gate.is_empty();
            match this.gate.pop_front() {
                Some(Tell::End) => break Some(End::Output),
                Some(Tell::Panic) => break Some(End::Panicked),
                Some(Tell::Checkpoint) => match reason_to_end {
                    Some(_) if this.kind == Kind::ClosureWith => break reason_to_end,
                    _ => {}
                },
                Some(_) if this.kind.is_closure() => {}
                Some(Tell::Suspend) => this.blocks = false,
                Some(Tell::Block) => this.blocks = true,
                None if this.blocks => return,
                None if this.is_cancelled => {
                    this.ended_by_itself = true;
                    break Some(End::Cancelled);
                }
                None if self.is_closed => break Some(End::ShutDown),
                None => break None,
            }
        };
        self.running = None;
        match end {
            Some(end) => {
                self.end(job, end);
                self.discard(job);
            }
            None => this.phase = Phase::Suspended,
        }
    }

    fn end_unless_cancelled(&mut self, job: usize, end: End) {
        let is_cancelled = self.jobs[job].is_cancelled;
        self.end(job, if is_cancelled { End::Cancelled } else { end });
    }

    fn end(&mut self, job: usize, end: End) {
        self.jobs[job].phase = Phase::Ended(end);
        *match end {
            End::Output => &mut self.ended.completed,
            End::Panicked => &mut self.ended.panicked,
            End::Cancelled => &mut self.ended.cancelled,
            End::Expired => &mut self.ended.expired,
            End::ShutDown => &mut self.ended.dropped,
            End::QueueFull => unreachable!("it is in"),
        } += 1;
    }

    pub(crate) fn cancel(&mut self, job: usize) {
        match self.jobs[job].phase {
            Phase::Queued if !self.jobs[job].has_begun => self.end(job, End::Cancelled),
            Phase::Suspended => {
                self.jobs[job].is_cancelled = true;
                self.jobs[job].phase = Phase::Queued;
                // To be dropped there.
                self.queue.push_back(job);
            }
            Phase::Queued | Phase::Running => self.jobs[job].is_cancelled = true,
            Phase::Ended(_) => {}
        }
    }

    pub(crate) fn let_deadline_pass(&mut self, job: usize) {
        self.jobs[job].deadline_has_passed = true;
    }

    /// What the `checkpoint` of its context says.
    pub(crate) fn reason_to_end(&self, job: usize) -> Option<End> {
        let job = &self.jobs[job];
        if job.is_cancelled {
            return Some(End::Cancelled);
        }
        self.refusal(job.deadline_has_passed)
    }

    pub(crate) fn end_of(&self, job: usize) -> Option<End> {
        match self.jobs[job].phase {
            Phase::Ended(end) => Some(end),
            _ => None,
        }
    }

    pub(crate) fn shut_down(&mut self) {
        self.is_closed = true;
        self.permits.close();
        self.queue.clear();
        for job in 0..self.jobs.len() {
            if matches!(self.jobs[job].phase, Phase::Queued | Phase::Suspended) {
                self.end_unless_cancelled(job, End::ShutDown);
            }
        }
    }
}
