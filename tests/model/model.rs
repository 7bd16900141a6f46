//! What a lane with one thread has to do, by its documentation.

use std::collections::VecDeque;

use crate::calls::{Kind, Tell};

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
    Queued {
        has_started: bool,
    },
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
    /// It runs, and somebody (or its deadline) wants it to end.
    wanted: Option<End>,
    place: Option<Place>,
    /// It was never taken on.
    pub(crate) was_refused: bool,
}

/// Shared by a job and those that it submitted.
type Place = usize;

/// A permit: a place, if the queue has a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permit(Option<Place>);

/// One who has called `admit`, and has not looked at the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiter {
    Waits,
    LetIn,
    Closed,
    Gone,
}

/// As in [`twolane::Metrics`].
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
    /// Also for futures that were woken: they go through the same queue. On
    /// `Backend::Runtime` Tokio decides about those.
    is_fifo: bool,
    /// Free places, if there is a limit.
    free: Option<usize>,
    /// How many hold each place.
    holders: Vec<usize>,
    waiting: VecDeque<usize>,
    pub(crate) waiters: Vec<Waiter>,
    pub(crate) jobs: Vec<Job>,
    queue: VecDeque<usize>,
    pub(crate) running: Option<usize>,
    pub(crate) is_closed: bool,
    ended: Counts,
}

impl Model {
    pub(crate) fn new(is_fifo: bool, queue_limit: Option<usize>) -> Self {
        Self {
            is_fifo,
            free: queue_limit,
            holders: Vec::new(),
            waiting: VecDeque::new(),
            waiters: Vec::new(),
            jobs: Vec::new(),
            queue: VecDeque::new(),
            running: None,
            is_closed: false,
            ended: Counts::default(),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let how_many = |is: fn(&Phase) -> bool| {
            let jobs = self.jobs.iter().filter(|job| is(&job.phase));
            jobs.count() as u64
        };
        Counts {
            queued: how_many(|phase| matches!(phase, Phase::Queued { .. })),
            running: how_many(|phase| *phase == Phase::Running),
            suspended: how_many(|phase| *phase == Phase::Suspended),
            ..self.ended
        }
    }

    // The way in.

    fn refusal(&self, is_late: bool) -> Option<End> {
        let shut_down = self.is_closed.then_some(End::ShutDown);
        shut_down.or(is_late.then_some(End::Expired))
    }

    pub(crate) fn enter(&mut self, is_late: bool) -> Result<Permit, End> {
        let entered = match (self.refusal(is_late), &mut self.free) {
            (Some(refusal), _) => Err(refusal),
            (None, None) => Ok(Permit(None)),
            (None, Some(0)) => Err(End::QueueFull),
            // Nobody waits where a place is free.
            (None, Some(free)) => {
                *free -= 1;
                Ok(self.new_place())
            }
        };
        self.count_refused(&entered);
        entered
    }

    pub(crate) fn is_full(&self) -> bool {
        !self.is_closed && self.free == Some(0)
    }

    /// Of one who waited in vain until his deadline.
    pub(crate) fn count_refusal(&mut self) {
        self.ended.rejected += 1;
    }

    fn new_place(&mut self) -> Permit {
        self.holders.push(1);
        Permit(Some(self.holders.len() - 1))
    }

    fn count_refused<T>(&mut self, entered: &Result<T, End>) {
        self.ended.rejected += u64::from(entered.is_err());
    }

    /// None: it waits, as the last of [`waiters`](Self::waiters).
    pub(crate) fn admit(&mut self, is_late: bool) -> Option<Result<Permit, End>> {
        if !is_late && self.is_full() {
            self.waiting.push_back(self.waiters.len());
            self.waiters.push(Waiter::Waits);
            return None;
        }
        Some(self.enter(is_late))
    }

    /// None: it waits still.
    pub(crate) fn poll_waiter(&mut self, waiter: usize) -> Option<Result<Permit, End>> {
        let entered = match self.waiters[waiter] {
            Waiter::Waits => return None,
            Waiter::LetIn => Ok(self.new_place()),
            Waiter::Closed => Err(End::ShutDown),
            Waiter::Gone => unreachable!("it is asked no more"),
        };
        self.waiters[waiter] = Waiter::Gone;
        self.count_refused(&entered);
        Some(entered)
    }

    pub(crate) fn drop_waiter(&mut self, waiter: usize) {
        self.ended.rejected += 1;
        self.waiting.retain(|waits| *waits != waiter);
        let before = std::mem::replace(&mut self.waiters[waiter], Waiter::Gone);
        if before == Waiter::LetIn {
            self.place_is_free();
        }
    }

    pub(crate) fn drop_permit(&mut self, Permit(place): Permit) {
        self.give_back(place);
    }

    fn give_back(&mut self, place: Option<Place>) {
        let Some(place) = place else { return };
        self.holders[place] -= 1;
        if self.holders[place] == 0 {
            self.place_is_free();
        }
    }

    fn place_is_free(&mut self) {
        match self.waiting.pop_front() {
            Some(first) => self.waiters[first] = Waiter::LetIn,
            None => *self.free.as_mut().expect("there is a limit") += 1,
        }
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
        let (phase, place) = match by {
            Ok(Permit(place)) => {
                self.ended.submitted += 1;
                self.queue.push_back(job);
                (Phase::Queued { has_started: false }, place)
            }
            Err(refusal) => (Phase::Ended(refusal), None),
        };
        self.jobs.push(Job {
            kind,
            phase,
            gate: gate.into_iter().collect(),
            blocks: kind != Kind::Sleepy,
            wanted: None,
            place,
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
            self.drop_permit(permit);
        }
        self.spawn(by, kind, gate)
    }

    /// By the job that runs, and so by its place.
    pub(crate) fn spawn_child(&mut self, parent: usize, kind: Kind, gate: Option<Tell>) -> usize {
        let by = match self.refusal(false) {
            Some(refusal) => Err(refusal),
            None => {
                let place = self.jobs[parent].place;
                if let Some(place) = place {
                    self.holders[place] += 1;
                }
                Ok(Permit(place))
            }
        };
        self.count_refused(&by);
        self.spawn(by, kind, gate)
    }

    /// Whose step may come next, now.
    pub(crate) fn next(&self) -> Vec<usize> {
        if self.running.is_some() {
            return Vec::new();
        }
        if self.is_fifo {
            return self.queue.front().copied().into_iter().collect();
        }
        let is_new = |job: &&usize| {
            let phase = self.jobs[**job].phase;
            phase == Phase::Queued { has_started: false }
        };
        let (new, woken): (Vec<_>, Vec<_>) = self.queue.iter().partition(is_new);
        woken.into_iter().chain(new.into_iter().take(1)).collect()
    }

    /// The thread has taken it.
    pub(crate) fn begin(&mut self, job: usize) {
        self.queue.retain(|queued| *queued != job);
        self.jobs[job].phase = Phase::Running;
        self.running = Some(job);
        self.go_on(job);
    }

    pub(crate) fn tell(&mut self, job: usize, tell: Tell) {
        self.jobs[job].gate.push_back(tell);
        match self.jobs[job].phase {
            Phase::Running => self.go_on(job),
            Phase::Suspended => {
                self.jobs[job].phase = Phase::Queued { has_started: true };
                self.queue.push_back(job);
            }
            Phase::Queued { .. } | Phase::Ended(_) => {}
        }
    }

    /// Until it has used up what is in its gate.
    fn go_on(&mut self, job: usize) {
        let this = &mut self.jobs[job];
        let end = loop {
            match this.gate.pop_front() {
                Some(Tell::End) => break Some(End::Output),
                Some(Tell::Panic) => break Some(End::Panicked),
                Some(_) if this.kind == Kind::Closure => {}
                Some(Tell::Suspend) => this.blocks = false,
                Some(Tell::Block) => this.blocks = true,
                None if this.blocks => return,
                None if this.wanted.is_some() => break this.wanted,
                None if self.is_closed => break Some(End::ShutDown),
                None => break None,
            }
        };
        self.running = None;
        match end {
            Some(end) => self.end(job, end),
            None => this.phase = Phase::Suspended,
        }
    }

    fn end(&mut self, job: usize, end: End) {
        self.queue.retain(|queued| *queued != job);
        self.jobs[job].phase = Phase::Ended(end);
        *match end {
            End::Output => &mut self.ended.completed,
            End::Panicked => &mut self.ended.panicked,
            End::Cancelled => &mut self.ended.cancelled,
            End::Expired => &mut self.ended.expired,
            End::ShutDown => &mut self.ended.dropped,
            End::QueueFull => unreachable!("it is in"),
        } += 1;
        let place = self.jobs[job].place.take();
        self.give_back(place);
    }

    /// By a cancel, or by its deadline.
    pub(crate) fn want_end(&mut self, job: usize, cause: End) {
        match self.jobs[job].phase {
            Phase::Queued { .. } | Phase::Suspended => self.end(job, cause),
            // Of two reasons the deadline counts; the documentation is silent.
            // The first of them is the cause.
            Phase::Running => {
                self.jobs[job].wanted.get_or_insert(cause);
            }
            Phase::Ended(_) => {}
        }
    }

    /// What its `checkpoint` says.
    pub(crate) fn is_to_end(&self, job: usize) -> bool {
        self.is_closed || self.jobs[job].wanted.is_some()
    }

    pub(crate) fn end_of(&self, job: usize) -> Option<End> {
        match self.jobs[job].phase {
            Phase::Ended(end) => Some(end),
            _ => None,
        }
    }

    pub(crate) fn shut_down(&mut self) {
        self.is_closed = true;
        for waiter in self.waiting.drain(..) {
            self.waiters[waiter] = Waiter::Closed;
        }
        for job in 0..self.jobs.len() {
            if matches!(
                self.jobs[job].phase,
                Phase::Queued { .. } | Phase::Suspended
            ) {
                self.end(job, End::ShutDown);
            }
        }
    }
}
