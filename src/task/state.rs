//! The life of one job, as one atomic word: a phase, and what the others want
//! of it.
//!
//! ```text
//!            start            finish
//!   QUEUED ---------> RUNNING --------> FINISHED
//!    ^ |              |  ^ | wake
//!    | | close   pause|  | v
//!    | |              |  WOKEN   (counts as running; pause puts it back in the queue)
//!    | v    close     v
//!    | CLOSED <------ IDLE       (CLOSED is one of the causes)
//!    |                 | wake
//!    +-----------------+
//! ```
//!
//! The phase says who may touch what, so that nobody ever waits for anybody:
//!
//! - QUEUED: exactly one reference to the job is in a queue, or in the hands of
//!   a thread that has just taken it out, or is to put it in. Whoever takes it
//!   out calls [`State::to_running`] and, if it answers [`ToRunning::Run`], owns the
//!   job's slot until it calls `finish`, `pause` or `close_running`.
//! - RUNNING, WOKEN: the slot belongs to the thread that runs the job.
//! - IDLE: the work rests in the slot; a wake queues it again.
//! - FINISHED: the output rests in the slot. It belongs to the awaiting side
//!   or, if that was gone before, to the runner.
//! - CLOSED: there will be no output, and the awaiting side may be told so at
//!   once. The work is dropped by whoever takes the reference out of the queue
//!   (closed from QUEUED), by the one who closed it (from IDLE), or by the
//!   runner (from RUNNING).
//!
//! Beside it stand flags, which are set and never cleared: the awaiting side has
//! left a waker, somebody wants the job to end (or its deadline does), the
//! awaiting side has gone, or has let the job run on. All is one word so that
//! nothing falls between: the one who ends the job learns, by the very step that
//! ends it, whom to tell; and one who sets a flag learns, by setting it, whether
//! that came too late. A runner can't rest a job that somebody wants to end: its
//! step from RUNNING finds the flag.
//!
//! The lane's `closed` is elsewhere: whoever closes the lane sets it and then
//! tries `close`; the runner rests the job and then looks. Both words are
//! changed and read `SeqCst` only, so one of the two sees the other (loom model
//! in `tests/loom`; [`fence_of_loom`] says what it takes there).

use std::ops::ControlFlow;

use crate::error::CloseReason;
use crate::sync::{AtomicU32, Ordering::SeqCst, fence_of_loom};

// `finish` is one `fetch_or`, from both that count as running.
const QUEUED: u32 = 0;
const RUNNING: u32 = 1;
const IDLE: u32 = 2;
const WOKEN: u32 = 3;
const FINISHED: u32 = 7;
/// And the cause: its place in [`CloseReason::ALL`].
const CLOSED: u32 = 8;
const PHASE: u32 = 15;

const JOIN_WAKER: u32 = 1 << 4;
const CANCELLED: u32 = 1 << 5;
const JOIN_DROPPED: u32 = 1 << 6;
const DETACHED: u32 = 1 << 7;

fn closed(cause: CloseReason) -> u32 {
    CLOSED + cause as u32
}

/// What a thread has to do with a job that it took out of a queue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ToRunning {
    /// Run it: the slot belongs to this thread. `was_idle`: it rested, and the
    /// Tokio task that has it was polled.
    Run { was_idle: bool },
    /// It was closed while it was queued: drop the work.
    Discard,
}

/// What the runner of a step without an output has to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ToIdle {
    /// Nothing: the job rests until it is woken, or another thread has it.
    Suspended,
    /// Put it into the queue: it was woken while it ran.
    Requeue,
    /// Drop the work and tell the awaiter: the job is closed.
    Discard {
        cause: CloseReason,
        interest: JoinInterest,
        /// A waker put it into the queue before it was closed, and has counted
        /// that. (Its reference in the queue finds nothing left to do.)
        was_queued: bool,
    },
}

/// What a call of [`State::close`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// Closed; its reference in the queue comes to a lane thread.
    WasQueued(JoinInterest),
    /// Closed; the work is the caller's to drop (or to have dropped).
    WasIdle(JoinInterest),
    /// Running, or ended already: nothing changed.
    No,
}

/// Who is there to be told of a job's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JoinInterest(u32);

impl JoinInterest {
    /// There is a waker to be called.
    pub(crate) fn has_waker(self) -> bool {
        self.0 & JOIN_WAKER != 0
    }

    /// Nobody will take the output.
    pub(crate) fn is_dropped(self) -> bool {
        self.0 & (JOIN_DROPPED | DETACHED) != 0
    }

    /// Nor would anybody hear that there is none.
    pub(crate) fn is_detached(self) -> bool {
        self.0 & DETACHED != 0
    }
}

/// How far a job is, for its awaiting side.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    NotYet,
    Finished,
    Closed(CloseReason),
}

#[derive(Debug)]
pub(crate) struct State(AtomicU32);

impl State {
    pub(crate) fn queued() -> Self {
        Self(AtomicU32::new(QUEUED))
    }

    /// For work that never waits in a queue of ours.
    pub(crate) fn running() -> Self {
        Self(AtomicU32::new(RUNNING))
    }

    /// Steps from one phase to another, keeping the flags. `step` gets phase
    /// and word, and breaks with the answer where there is no step to take.
    /// Else the answer is the word before.
    fn step<B>(&self, mut step: impl FnMut(u32, u32) -> ControlFlow<B, u32>) -> Result<u32, B> {
        let mut word = self.0.load(SeqCst);
        loop {
            let to = match step(word & PHASE, word) {
                ControlFlow::Continue(to) => (word & !PHASE) | to,
                ControlFlow::Break(answer) => return Err(answer),
            };
            match self.0.compare_exchange_weak(word, to, SeqCst, SeqCst) {
                Ok(_) => return Ok(word),
                Err(now) => word = now,
            }
        }
    }

    pub(crate) fn to_running(&self) -> ToRunning {
        let started = self.step(|phase, _| match phase {
            QUEUED | IDLE => ControlFlow::Continue(RUNNING),
            CLOSED.. => ControlFlow::Break(ToRunning::Discard),
            _ => unreachable!("one reference to the job is queued, and no other runs it"),
        });
        started.map_or_else(
            |otherwise| otherwise,
            |before| ToRunning::Run {
                was_idle: before & PHASE == IDLE,
            },
        )
    }

    /// The runner's, after a step without an output. The work must be back in
    /// its place before. `lane_is_closed`: the thread that closed the lane could
    /// not close a job that ran, and may have looked before the job rested.
    pub(crate) fn to_idle(&self, lane_is_closed: impl FnOnce() -> bool) -> ToIdle {
        let before = self.step::<()>(|phase, word| {
            ControlFlow::Continue(match phase {
                _ if word & CANCELLED != 0 => closed(CloseReason::Cancelled),
                WOKEN => QUEUED,
                _ => IDLE,
            })
        });
        let before = before.expect("there is always a step to take");
        let was_woken = before & PHASE == WOKEN;
        if before & CANCELLED != 0 {
            return ToIdle::Discard {
                cause: CloseReason::Cancelled,
                interest: JoinInterest(before),
                was_queued: false,
            };
        }
        fence_of_loom();
        if lane_is_closed() {
            // Out of WOKEN the job is queued by this very call, which has not
            // counted that; out of IDLE, by a waker, which has.
            let (interest, was_queued) = match self.close(CloseReason::ShutDown) {
                Close::WasIdle(interest) => (interest, false),
                Close::WasQueued(interest) => (interest, !was_woken),
                // Another thread closed it meanwhile and relies on its reference in the
                // queue, which is still in the hands of this one.
                Close::No if was_woken => return ToIdle::Requeue,
                Close::No => return ToIdle::Suspended,
            };
            return ToIdle::Discard {
                cause: CloseReason::ShutDown,
                interest,
                was_queued,
            };
        }
        if was_woken {
            ToIdle::Requeue
        } else {
            ToIdle::Suspended
        }
    }

    /// The runner's. The output must be in its place before.
    pub(crate) fn finish(&self) -> JoinInterest {
        JoinInterest(self.0.fetch_or(FINISHED, SeqCst))
    }

    /// As [`finish`](Self::finish), where a [`close_running`](Self::close_running)
    /// from outside may have come first: then the output does not count.
    pub(crate) fn try_finish(&self) -> Option<JoinInterest> {
        self.leave_running(FINISHED)
    }

    /// The runner's (or, for work outside our queues, anyone's): no output
    /// will come. None if somebody else has ended it.
    pub(crate) fn close_running(&self, cause: CloseReason) -> Option<JoinInterest> {
        self.leave_running(closed(cause))
    }

    fn leave_running(&self, to: u32) -> Option<JoinInterest> {
        let left = self.step(|phase, _| match phase {
            RUNNING | WOKEN => ControlFlow::Continue(to),
            _ => ControlFlow::Break(()),
        });
        left.ok().map(JoinInterest)
    }

    /// Says whether the caller must put the job into the queue.
    pub(crate) fn wake(&self) -> bool {
        let woken = self.step(|phase, _| match phase {
            IDLE => ControlFlow::Continue(QUEUED),
            RUNNING => ControlFlow::Continue(WOKEN),
            _ => ControlFlow::Break(()),
        });
        woken.is_ok_and(|before| before & PHASE == IDLE)
    }

    /// Closes the job from outside, unless it runs or has ended.
    pub(crate) fn close(&self, cause: CloseReason) -> Close {
        let closed = self.step(|phase, _| match phase {
            QUEUED | IDLE => ControlFlow::Continue(closed(cause)),
            _ => ControlFlow::Break(Close::No),
        });
        match closed {
            Ok(before) if before & PHASE == QUEUED => Close::WasQueued(JoinInterest(before)),
            Ok(before) => Close::WasIdle(JoinInterest(before)),
            Err(no) => no,
        }
    }

    /// A running job can't be closed from outside: its runner looks. One that has
    /// ended is not marked: what it left behind would take itself for cancelled.
    pub(crate) fn request_cancel(&self) {
        let mark = |word| (word & PHASE < FINISHED).then_some(word | CANCELLED);
        // An error means that the job has ended.
        let _ = self.0.fetch_update(SeqCst, SeqCst, mark);
    }

    pub(crate) fn is_cancel_requested(&self) -> bool {
        self.0.load(SeqCst) & CANCELLED != 0
    }

    pub(crate) fn progress(&self) -> Progress {
        Self::progress_of(self.0.load(SeqCst))
    }

    fn progress_of(word: u32) -> Progress {
        match word & PHASE {
            FINISHED => Progress::Finished,
            phase @ CLOSED.. => Progress::Closed(CloseReason::ALL[(phase - CLOSED) as usize]),
            _ => Progress::NotYet,
        }
    }

    /// The awaiting side's, after it has left a waker: whoever ends the job
    /// from now on calls it.
    pub(crate) fn set_join_waker(&self) -> Progress {
        Self::progress_of(self.0.fetch_or(JOIN_WAKER, SeqCst))
    }

    /// The awaiting side's last word: it wants no output, and that the job
    /// runs on (`detached`) or not. If it has finished already, the output is
    /// the caller's to drop.
    pub(crate) fn set_join_dropped(&self, detached: bool) -> (Progress, JoinInterest) {
        let how = if detached { DETACHED } else { JOIN_DROPPED };
        let before = self.0.fetch_or(how, SeqCst);
        (Self::progress_of(before), JoinInterest(before))
    }

    /// No step will ever run again.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.load(SeqCst) & PHASE >= FINISHED
    }
}
