//! A case: each call, on the lane and on the model.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, LazyLock, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use twolane_core::{CpuRuntime, Handle, Priority};

use crate::calls::{Call, Case, Deadline, Kind, Tell, Which};
use crate::check::{Checked, HAS_FAILED, patience, wait_for};
use crate::jobs::{Flag, Real, Way, end_of_task};
use crate::model::{Model, Phase};
use crate::reserving::{Permit, Waiter};
use crate::support::wait::wait_until;

pub(crate) fn run(case: &Case) -> Checked {
    let outcome = run_once(case);
    if outcome.is_err() {
        HAS_FAILED.store(true, SeqCst);
    }
    outcome
}

fn run_once(case: &Case) -> Checked {
    let mut run = Run::new(case);
    for call in &case.calls {
        run.call(*call)?;
        run.settle()?;
    }
    run.finish()
}

pub(crate) struct Run {
    pub(crate) model: Model,
    cpu: CpuRuntime,
    pub(crate) handle: Handle,
    pub(crate) jobs: Vec<Real>,
    pub(crate) permits: Vec<Permit>,
    /// Those that have not resolved.
    pub(crate) waiters: Vec<Waiter>,
    pub(crate) steps: mpsc::Receiver<usize>,
    step: mpsc::Sender<usize>,
    /// Whether the last call gave the lane, or its control thread, something to do.
    pub(crate) lane_is_at_it: bool,
}

impl Run {
    fn new(case: &Case) -> Self {
        static IO: LazyLock<tokio::runtime::Runtime> =
            LazyLock::new(|| tokio::runtime::Runtime::new().unwrap());
        let mut settings = CpuRuntime::builder()
            .worker_threads(1)
            .io_handle(IO.handle().clone())
            // As the model's queue is (`tests/lane/short_first.rs` has the order of the default).
            .short_jobs_first(false);
        if let Some(limit) = case.queue_limit {
            settings = settings.queue_limit(Priority::Normal, limit);
        }
        let cpu = settings.build().unwrap();
        let (step, steps) = mpsc::channel();
        Self {
            model: Model::new(case.queue_limit),
            handle: cpu.handle().clone(),
            cpu,
            jobs: Vec::new(),
            permits: Vec::new(),
            waiters: Vec::new(),
            steps,
            step,
            lane_is_at_it: false,
        }
    }

    fn call(&mut self, call: Call) -> Checked {
        self.lane_is_at_it = false;
        match call {
            Call::Spawn(until, kind, first) => {
                let (handle, is_late) = self.handle_until(until);
                let by = self.model.enter(is_late);
                let job = self.model.spawn(by, kind, first);
                self.submit(job, kind, first, Way::Spawn(&handle));
            }
            Call::SpawnChild(until, kind, first) => self.spawn_child(until, kind, first)?,
            Call::TryReserve(until) => self.try_reserve(until)?,
            Call::Reserve(until) => self.reserve(until)?,
            Call::PollReserve(which) => self.poll_reserve(which)?,
            Call::DropReserve(which) => self.drop_reserve(which),
            Call::SetDeadline { permit, has_passed } => self.set_deadline(permit, has_passed),
            Call::SpawnByPermit(which, kind, first) => {
                if let Some(permit) = self.take_permit(which) {
                    let (by, is_late) = (permit.model, permit.is_late);
                    let job = self.model.spawn_by(by, is_late, kind, first);
                    self.submit(job, kind, first, Way::By(permit.real));
                }
            }
            Call::SpawnUntilSoon(which, kind) => self.spawn_until_soon(which, kind)?,
            Call::DropPermit(which) => {
                if let Some(permit) = self.take_permit(which) {
                    self.model.permits.give_back(permit.model);
                    drop(permit.real);
                }
            }
            Call::Tell(which, tell) => {
                if let Some(job) = which.of(&self.living()) {
                    let phase = self.model.jobs[job].phase;
                    self.lane_is_at_it = matches!(phase, Phase::Running | Phase::Suspended);
                    self.model.tell(job, tell);
                    self.jobs[job].tell(tell);
                }
            }
            Call::TellAndAwait(tell) => self.tell_and_await(tell)?,
            Call::Cancel(which) => {
                if let Some(job) = which.of(&self.with_task()) {
                    self.model.cancel(job);
                    self.jobs[job].task.as_ref().unwrap().abort();
                }
            }
            Call::Abort(which) => {
                if let Some(job) = which.of(&self.taken_on()) {
                    self.model.cancel(job);
                    self.jobs[job].abort.as_ref().unwrap().abort();
                }
            }
            Call::Drop(which) => {
                if let Some(job) = which.of(&self.with_task()) {
                    self.model.cancel(job);
                    self.jobs[job].waker = None;
                    drop(self.jobs[job].task.take());
                }
            }
            Call::Detach(which) => {
                if let Some(job) = which.of(&self.with_task()) {
                    self.jobs[job].waker = None;
                    self.jobs[job].task.take().unwrap().detach();
                }
            }
            Call::Poll(which) => self.poll(which.of(&self.with_task()))?,
            Call::Await(which) => {
                let ended = |job: &usize| self.model.end_of(*job).is_some();
                let those: Vec<_> = self.with_task().into_iter().filter(ended).collect();
                self.poll(which.of(&those))?;
            }
            Call::Shutdown => {
                self.lane_is_at_it = !self.model.is_closed;
                self.model.shut_down();
                self.cpu.shutdown_background();
            }
        }
        Ok(())
    }

    pub(crate) fn index(&self, which: Which, len: usize) -> Option<usize> {
        which.of(&(0..len).collect::<Vec<_>>())
    }

    fn jobs_that(&self, is: impl Fn(&usize) -> bool) -> Vec<usize> {
        (0..self.jobs.len()).filter(is).collect()
    }

    fn with_task(&self) -> Vec<usize> {
        self.jobs_that(|job| self.jobs[*job].task.is_some())
    }

    fn taken_on(&self) -> Vec<usize> {
        self.jobs_that(|job| self.jobs[*job].abort.is_some())
    }

    fn living(&self) -> Vec<usize> {
        self.jobs_that(|job| self.model.end_of(*job).is_none())
    }

    pub(crate) fn take_permit(&mut self, which: Which) -> Option<Permit> {
        let n = self.index(which, self.permits.len())?;
        Some(self.permits.remove(n))
    }

    // Submitting.

    fn submit(&mut self, job: usize, kind: Kind, first: Option<Tell>, way: Way<'_>) {
        let (mut real, work) = Real::new(job, kind, first, self.step.clone());
        real.submitted(work.submit(way));
        self.jobs.push(real);
    }

    fn spawn_child(&mut self, until: Deadline, kind: Kind, first: Option<Tell>) -> Checked {
        let Some(parent) = self.model.running else {
            return Ok(());
        };
        let (handle, is_late) = self.handle_until(until);
        let job = self.model.spawn_child(is_late, kind, first);
        let (mut real, work) = Real::new(job, kind, first, self.step.clone());
        let spawned = self.jobs[parent].call(move |_| work.submit(Way::Spawn(&handle)));
        let spawned = spawned.recv_timeout(patience());
        prop_assert!(spawned.is_ok(), "job {} spawned nothing", parent);
        real.submitted(spawned.unwrap());
        self.jobs.push(real);
        Ok(())
    }

    /// Whether the deadline comes before the submission, or before the job's start,
    /// is the clock's choice.
    fn spawn_until_soon(&mut self, permit: Option<Which>, kind: Kind) -> Checked {
        let job = self.jobs.len();
        let (mut real, work) = Real::new(job, kind, None, self.step.clone());
        let soon = Duration::from_millis(1);
        let deadline;
        let (task, by, was_late) = match permit {
            Some(which) => {
                let Some(permit) = self.take_permit(which) else {
                    return Ok(());
                };
                deadline = Instant::now() + soon;
                let way = Way::By(permit.real.with_deadline(deadline));
                (work.submit(way), Ok(permit.model), permit.is_late)
            }
            None => {
                let by = self.model.enter(false);
                deadline = Instant::now() + soon;
                let handle = self.handle.with_deadline(deadline);
                (work.submit(Way::Spawn(&handle)), by, false)
            }
        };
        real.submitted(task);
        self.jobs.push(real);
        match by {
            Ok(permit) => {
                let was_refused = self.handle.metrics().rejected > self.model.counts().rejected;
                let is_late = was_late || was_refused;
                self.model.spawn_by(permit, is_late, kind, None);
            }
            Err(_) => {
                self.model.spawn(by, kind, None);
            }
        }
        if self.model.end_of(job).is_some() {
            return Ok(());
        }
        self.lane_is_at_it = true;
        if self.model.running.is_none() {
            let abort = self.jobs[job].abort.as_ref().unwrap();
            // It tells of its start before its end can be seen.
            let started = wait_for("a start, or an end", || {
                let has_ended = abort.is_finished();
                match self.steps.try_recv() {
                    Ok(step) => Some(Some(step)),
                    Err(_) => has_ended.then_some(None),
                }
            })?;
            if let Some(step) = started {
                prop_assert_eq!(step, job);
                self.model.begin(job);
            }
        }
        wait_until(|| Instant::now() >= deadline);
        self.model.let_deadline_pass(job);
        Ok(())
    }

    // Awaiting.

    fn poll(&mut self, job: Option<usize>) -> Checked {
        let Some(job) = job else { return Ok(()) };
        let flag = Arc::new(Flag::default());
        let task = self.jobs[job].task.as_mut().unwrap();
        let polled = poll_once(task, &flag).map(|result| end_of_task(job, result));
        let expected = self.model.end_of(job).map_or(Poll::Pending, Poll::Ready);
        prop_assert_eq!(polled, expected, "of job {}", job);
        self.jobs[job].waker = Some(flag).filter(|_| polled.is_pending());
        if polled.is_ready() {
            self.jobs[job].task = None;
        }
        Ok(())
    }

    /// An awaiter that has the output finds the job in the counters at once.
    fn tell_and_await(&mut self, tell: Tell) -> Checked {
        let Some(job) = self.model.running else {
            return Ok(());
        };
        self.lane_is_at_it = true;
        self.model.tell(job, tell);
        self.jobs[job].tell(tell);
        let Some(end) = self.model.end_of(job) else {
            return Ok(());
        };
        let Some(task) = self.jobs[job].task.take() else {
            return Ok(());
        };
        self.jobs[job].waker = None;
        let result = self.await_it("the output", task)?;
        prop_assert_eq!(end_of_task(job, result), end, "of job {}", job);
        // (The next ones may have ended too.)
        let (now, expected) = (self.counts(), self.model.counts());
        prop_assert!(now.completed >= expected.completed);
        prop_assert!(now.panicked >= expected.panicked);
        Ok(())
    }

    fn await_it<F: Future + Unpin>(&self, what: &str, mut future: F) -> Checked<F::Output> {
        let mut cx = Context::from_waker(Waker::noop());
        wait_for(what, || match Pin::new(&mut future).poll(&mut cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    }

    /// After the lane's last thread has ended there is nothing to be waited for.
    fn finish(mut self) -> Checked {
        self.call(Call::Shutdown)?;
        self.settle()?;
        while let Some(job) = self.model.running {
            self.lane_is_at_it = true;
            self.model.tell(job, Tell::End);
            self.jobs[job].tell(Tell::End);
            self.settle()?;
        }
        let left = self.await_it("the shutdown", self.cpu.shutdown())?;
        prop_assert!(left.is_empty(), "{:?}", left);
        self.lane_is_at_it = false;
        self.settle()?;
        for job in self.with_task() {
            self.poll(Some(job))?;
        }
        for (job, real) in self.jobs.iter().enumerate() {
            prop_assert_eq!(real.drops.load(SeqCst), 1, "drops of job {}", job);
        }
        Ok(())
    }
}

pub(crate) fn poll_once<F: Future + Unpin>(future: &mut F, flag: &Arc<Flag>) -> Poll<F::Output> {
    let waker = Waker::from(flag.clone());
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}
