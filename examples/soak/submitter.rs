//! A submitter: draws a job, submits it, and decides what becomes of its task.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::Poll;
use std::time::Instant;

use fastrand::Rng;
use futures::poll;
use tokio::task::unconstrained;
use twolane::{JoinError, Permit, Reserve};

use super::held::Held;
use super::kinds::Kind;
use super::ledger::{Ledger, What};
use super::submit::{Deadline, Way, equip, submit};

pub struct Submitter {
    ledger: Arc<Ledger>,
    rng: Rng,
    /// It runs on a thread of its own, and may wait there.
    may_wait: bool,
    kept: Vec<Kept>,
}

struct Kept {
    held: Held,
    is_wanted: bool,
}

impl Submitter {
    pub fn new(ledger: &Arc<Ledger>, rng: Rng, may_wait: bool) -> Self {
        Self {
            ledger: ledger.clone(),
            rng,
            may_wait,
            kept: Vec::new(),
        }
    }

    pub async fn run(mut self) {
        while self.ledger.wants_more() {
            self.submit_one().await;
            if self.kept.len() > self.ledger.plan.window {
                self.settle_one().await;
            }
            match self.rng.u8(..) {
                0 => self.look_at_metrics(),
                1..8 => tokio::task::yield_now().await,
                _ => {}
            }
        }
        while !self.kept.is_empty() {
            self.settle_one().await;
        }
        self.look_at_metrics();
    }

    async fn submit_one(&mut self) {
        let ledger = self.ledger.clone();
        let on_rayon = ledger.plan.on_rayon();
        let level = [0, 1, 1, 1, 2][self.rng.usize(..5)];
        let Some((way, deadline)) = self.find_way_in(level).await else {
            return;
        };
        let kind = Kind::draw(&mut self.rng, 0, on_rayon);
        let what = What {
            kind,
            level,
            may_expire: deadline.may_come(),
        };
        let (extra, let_go) = equip(&ledger, kind, 0, &mut self.rng);
        let Some(captures) = ledger.enroll(what) else {
            return;
        };
        if let Some(held) = submit(captures, extra, 0, &mut self.rng, way) {
            self.decide(held, kind, level).await;
        }
        drop(let_go);
    }

    /// None: not this time.
    async fn find_way_in(&mut self, level: usize) -> Option<(Way, Deadline)> {
        let handle = self.ledger.handles[level].clone();
        let entered = match self.rng.u8(..10) {
            0..5 => return Some((Way::Direct, Deadline::None)),
            5 | 6 => return Some((Way::Try, Deadline::None)),
            7 => handle.try_reserve(),
            _ => {
                let reserve = handle.reserve();
                if self.rng.u8(..8) == 0 {
                    self.leave_half_way(level, reserve).await;
                    return None;
                }
                let deadline = Deadline::draw(&mut self.rng);
                let instant = deadline.instant();
                let waiting = &self.ledger.levels[level].waiting;
                waiting.fetch_add(1, SeqCst);
                let entered = match instant {
                    Some(instant) => self.wait_until(instant, reserve).await,
                    None if self.may_wait && self.rng.bool() => Some(reserve.wait()),
                    None => Some(unconstrained(reserve).await),
                };
                waiting.fetch_sub(1, SeqCst);
                let Some(entered) = entered else {
                    self.gave_up(level);
                    return None;
                };
                let mut permit = self.entered(level, entered)?;
                if let Some(instant) = instant {
                    permit = permit.with_deadline(instant);
                }
                return Some((Way::Permit(permit), deadline));
            }
        };
        let permit = self.entered(level, entered)?;
        let deadline = Deadline::draw(&mut self.rng);
        match deadline.instant() {
            Some(instant) => Some((Way::Permit(permit.with_deadline(instant)), deadline)),
            None if self.rng.u8(..8) == 0 => None,
            None => Some((Way::Permit(permit), deadline)),
        }
    }

    // Unconstrained, here and elsewhere: the lane counts each wait that is given up, but
    // not one that Tokio's budget kept from its first poll.

    /// None: it was too late, and the wait was given up.
    async fn wait_until(
        &self,
        instant: Instant,
        reserve: Reserve,
    ) -> Option<Result<Permit, JoinError>> {
        // A timer of the runtime that outlives the round, also on a plain thread.
        let timed = {
            let _io = self.ledger.io.enter();
            tokio::time::timeout_at(instant.into(), unconstrained(reserve))
        };
        timed.await.ok()
    }

    /// Waits for a moment, and gives up its turn.
    async fn leave_half_way(&mut self, level: usize, reserve: Reserve) {
        let counts = &self.ledger.levels[level];
        counts.waiting.fetch_add(1, SeqCst);
        let mut reserve = Box::pin(unconstrained(reserve));
        for _ in 0..self.rng.u8(1..4) {
            if let Poll::Ready(entered) = poll!(&mut reserve) {
                // Its turn goes to the next waiter.
                counts.waiting.fetch_sub(1, SeqCst);
                drop(self.entered(level, entered));
                return;
            }
            tokio::task::yield_now().await;
        }
        drop(reserve);
        counts.waiting.fetch_sub(1, SeqCst);
        self.gave_up(level);
    }

    fn gave_up(&self, level: usize) {
        let counts = &self.ledger.levels[level];
        counts.failed_admissions.fetch_add(1, SeqCst);
        self.ledger.half_admissions.fetch_add(1, SeqCst);
    }

    fn entered(&self, level: usize, entered: Result<Permit, JoinError>) -> Option<Permit> {
        match entered {
            Ok(permit) => Some(permit),
            Err(error) => {
                self.refused(level, &error);
                None
            }
        }
    }

    fn refused(&self, level: usize, error: &JoinError) {
        let Ledger { plan, endings, .. } = &*self.ledger;
        self.ledger.levels[level]
            .failed_admissions
            .fetch_add(1, SeqCst);
        let is_true = (error.is_queue_full() && plan.is_limited(level))
            || (error.is_shutdown() && endings.has_begun())
            || (error.is_io_runtime_gone() && endings.io_dies());
        if !is_true {
            self.ledger
                .fail(format!("no permit in level {level}: {error}"));
        }
    }

    /// What becomes of the task.
    async fn decide(&mut self, held: Held, kind: Kind, level: usize) {
        let fate = self.rng.u8(..20);
        if kind == Kind::Forever {
            return self.decide_on_endless(held, fate, level).await;
        }
        match fate {
            0 => drop(held),
            1 => held.poll_and_drop().await,
            2 => self.keep(held, false),
            3 | 4 => held.detach(),
            5 => {
                held.abort();
                self.keep(held, true);
            }
            6 => self.abort_from_elsewhere(held),
            // It is let go by this very submitter, afterwards.
            7..10 if kind != Kind::Hold => self.settle(held).await,
            _ => self.keep(held, true),
        }
    }

    /// The job never ends by itself.
    async fn decide_on_endless(&mut self, held: Held, fate: u8, level: usize) {
        // It would keep its permit from a waiter: perhaps from this very submitter, which
        // holds the task.
        let may_stay = !self.ledger.plan.is_limited(level);
        match fate {
            0..4 => drop(held),
            4..8 => held.poll_and_drop().await,
            8..11 => self.abort_from_elsewhere(held),
            11..14 if may_stay => self.keep(held, false),
            14..17 if may_stay => held.detach(),
            _ => {
                held.abort();
                self.keep(held, true);
            }
        }
    }

    fn keep(&mut self, held: Held, is_wanted: bool) {
        self.kept.push(Kept { held, is_wanted });
    }

    fn abort_from_elsewhere(&mut self, held: Held) {
        let aborter = held.aborter();
        self.ledger.aside(async move { aborter.abort() });
        self.keep(held, true);
    }

    async fn settle_one(&mut self) {
        let one = self.rng.usize(..self.kept.len());
        let Kept { held, is_wanted } = self.kept.swap_remove(one);
        if is_wanted {
            self.settle(held).await;
        }
    }

    async fn settle(&mut self, held: Held) {
        if self.may_wait && self.rng.bool() {
            held.settle_here();
        } else {
            held.settle().await;
        }
    }

    /// During the round: no more jobs have ended than were submitted, and every result
    /// that an awaiter has seen is counted.
    fn look_at_metrics(&self) {
        for (handle, level) in self.ledger.handles.iter().zip(&self.ledger.levels) {
            let outputs = level.seen_outputs.load(SeqCst);
            let panics = level.seen_panics.load(SeqCst);
            let metrics = handle.metrics();
            let closed = metrics.cancelled + metrics.expired + metrics.dropped;
            if metrics.completed < outputs
                || metrics.panicked < panics
                || metrics.submitted < metrics.completed + metrics.panicked + closed
            {
                self.ledger.fail(format!(
                    "with {outputs} outputs and {panics} panics seen the counters said {metrics:?}"
                ));
            }
        }
    }
}
