//! The life of one job, as one atomic word: a phase, and flags set by other threads.
//!
//! | from | to | by |
//! |---|---|---|
//! | QUEUED | RUNNING | the worker that popped the job: `to_running` |
//! | RUNNING | WOKEN | a waker, while the step runs: `wake` |
//! | RUNNING | IDLE | the runner, after a step without an output: `to_idle` |
//! | WOKEN | QUEUED | the same |
//! | IDLE | QUEUED | a waker: `wake` |
//! | RUNNING, WOKEN | FINISHED | the runner, with the output: `finish` |
//! | QUEUED, IDLE | CLOSED | the control thread; on a lane that is closed also the runner, and the thread that pushes: `close` |
//! | QUEUED | CLOSED | a worker, of a job that is not cancelled: `close_uncancelled` |
//! | QUEUED | CLOSED | a canceller, of a job that has not begun: `close_unbegun` |
//! | RUNNING, WOKEN | CLOSED | the runner that finds a request to cancel: `end_cancelled` |
//!
//! The phase says which thread may touch the slot, so no thread ever waits for another:
//!
//! - QUEUED: there is exactly one reference to the job for the queue. It is in the
//!   queue, or a task of the lane's own runtime has it, or a thread holds it: one that has just popped it, or one that is about to
//!   push it. The thread that pops it calls [`State::to_running`]. If the answer is true,
//!   this thread is the runner. It owns the job's slot until it calls `finish` or `to_idle`.
//! - RUNNING, WOKEN: the slot belongs to the runner, the thread that runs the job.
//! - IDLE: the job is suspended and its work is in the slot. A wake queues it again, and so does
//!   a canceller: a runner drops the work.
//! - FINISHED: the output is in the slot. It belongs to the awaiter. If the `Task` was
//!   dropped or detached before, it belongs to the runner.
//! - CLOSED: there will be no output. The awaiter may be notified at once. If the job
//!   was closed from QUEUED, the thread that pops its reference drops the work; at a
//!   shutdown the reaper may drop it before. If it was closed from IDLE, the thread that
//!   closed it drops the work, or has a lane thread do it. If it was closed from RUNNING,
//!   the runner has dropped the work.
//!
//! The other bits are flags. They are set and never cleared: the awaiter has registered
//! a waker; a canceller requests the end; the `Task` was dropped; the `Task` was
//! detached; a step has begun. Phase and flags share one word so that no event is lost:
//!
//! - The thread that ends the job reads the flags in the same atomic operation. So it
//!   knows whether an awaiter has to be woken.
//! - The thread that sets a flag reads the phase in the same operation. So it knows
//!   whether the job had ended before.
//! - A runner cannot suspend a job whose cancellation was requested: its transition out
//!   of RUNNING finds the flag. It drops the work, and then closes the job.
//!
//! The lane's `closed` flag is another word. The thread that closes the lane sets the
//! flag, and the control thread then calls `close` on each job. A runner calls
//! `to_idle`, which makes the job IDLE and then reads the flag. Both words are accessed
//! with `SeqCst` only, so at least one of the two threads sees the other's change. (The
//! loom models are in `tests/models`; [`fence_of_loom`] says what they need for that.)
//!
//! **Obligations.** [safety] One thread at a time has the slot. [safety] A job ends once: with its
//! output or with one reason. [safety] The work is dropped before the awaiter is told, but for a
//! job that is closed while it is queued or suspended. [liveness] A job that has ended wakes its
//! awaiter. [liveness] A wake, a request to cancel and a close that come during a step have their
//! effect after it.

use crate::error::CloseReason;
use crate::sync::{AtomicU32, Ordering::SeqCst, fence_of_loom};

// `finish` is one `fetch_or`: RUNNING and WOKEN both become FINISHED by it.
const QUEUED: u32 = 0;
const RUNNING: u32 = 1;
const IDLE: u32 = 2;
const WOKEN: u32 = 3;
const FINISHED: u32 = 7;
/// Plus the index of the close reason in [`CloseReason::ALL`].
const CLOSED: u32 = 8;
const PHASE: u32 = 15;

const JOIN_WAKER: u32 = 1 << 4;
const CANCELLED: u32 = 1 << 5;
const JOIN_DROPPED: u32 = 1 << 6;
const DETACHED: u32 = 1 << 7;
const BEGUN: u32 = 1 << 8;

/// What the runner has to do after a step without an output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ToIdle {
    /// Nothing: the job is suspended until a wake, or another thread has it.
    Suspended,
    /// Push it to the queue: it was woken while it ran.
    Requeue,
    /// Drop the work, and then call `end_cancelled`: a cancel was requested.
    Cancelled,
    /// Notify the awaiter, and drop the work: the job is closed.
    ///
    /// `was_queued`: the job was QUEUED when it was closed, and its waker has counted that.
    /// So the counters take it out of the queued jobs, not out of the suspended ones. (The
    /// thread that pops the waker's reference finds nothing to do.)
    Discard(Closed),
}

/// A job that was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed {
    pub(crate) cause: CloseReason,
    pub(crate) interest: JoinInterest,
    /// It was QUEUED: the thread that pops the job's reference from the queue drops the
    /// work, or has the reaper do it. Otherwise it was IDLE: the thread that closed it drops
    /// the work, or has another thread drop it.
    pub(crate) was_queued: bool,
}

/// What the side that holds the `Task` wants to know of the job's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JoinInterest(u32);

impl JoinInterest {
    /// The awaiter has registered a waker.
    pub(crate) fn has_waker(self) -> bool {
        self.0 & JOIN_WAKER != 0
    }

    /// No awaiter will take the output.
    pub(crate) fn is_dropped(self) -> bool {
        self.0 & (JOIN_DROPPED | DETACHED) != 0
    }

    /// No awaiter will learn that there is no output.
    pub(crate) fn is_detached(self) -> bool {
        self.0 & DETACHED != 0
    }
}

/// How far the job is, as its awaiter sees it.
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

    /// Changes the phase and keeps the flags.
    ///
    /// `step` gets the phase and the word. It returns the new phase, or `None` if there is no
    /// transition. The result is the word before the change.
    fn change_phase(&self, step: impl Fn(u32, u32) -> Option<u32>) -> Option<u32> {
        let next = |word| Some((word & !PHASE) | step(word & PHASE, word)?);
        self.0.fetch_update(SeqCst, SeqCst, next).ok()
    }

    /// For a thread that popped the job from a queue. True: it runs the job, and the slot
    /// belongs to it. False: it drops the work. The job was closed while it was queued.
    pub(crate) fn to_running(&self) -> bool {
        let started = self.change_phase(|phase, _| match phase {
            QUEUED => Some(RUNNING | BEGUN),
            CLOSED.. => None,
            _ => unreachable!("one reference to the job is queued, and no other runs it"),
        });
        started.is_some()
    }

    /// Suspends the job after a step without an output, or queues or closes it.
    ///
    /// The runner calls it; the work must be in the slot before. `lane_is_closed`
    /// covers a race: the control thread cannot close a job that runs, and may have
    /// tried before the job became IDLE.
    #[inline]
    pub(crate) fn to_idle(&self, lane_is_closed: &dyn Fn() -> Option<CloseReason>) -> ToIdle {
        let before = self.change_phase(|phase, word| match phase {
            _ if word & CANCELLED != 0 => None,
            WOKEN => Some(QUEUED),
            _ => Some(IDLE),
        });
        let Some(before) = before else {
            return ToIdle::Cancelled;
        };
        let was_woken = before & PHASE == WOKEN;
        fence_of_loom();
        if let Some(cause) = lane_is_closed() {
            // If the job was WOKEN, this call has just made it QUEUED, and no thread has
            // counted that. If it was RUNNING, this call has made it IDLE; if it is
            // QUEUED now, a waker did that, and has counted it.
            if let Some(mut closed) = self.close(cause) {
                closed.was_queued &= !was_woken;
                return ToIdle::Discard(closed);
            }
            // Another thread has closed the job meanwhile. If that was out of QUEUED, it
            // relies on the reference in the queue, and this thread still has to push that.
        }
        if was_woken {
            ToIdle::Requeue
        } else {
            ToIdle::Suspended
        }
    }

    /// The runner calls it; the output must be in the slot before.
    pub(crate) fn finish(&self) -> JoinInterest {
        JoinInterest(self.0.fetch_or(FINISHED, SeqCst))
    }

    /// Returns whether the caller must push the job to the queue.
    pub(crate) fn wake(&self) -> bool {
        let woken = self.change_phase(|phase, _| match phase {
            IDLE => Some(QUEUED),
            RUNNING => Some(WOKEN),
            _ => None,
        });
        woken.is_some_and(|before| before & PHASE == IDLE)
    }

    /// Closes the job unless it runs or has ended. Any thread may call it.
    pub(crate) fn close(&self, cause: CloseReason) -> Option<Closed> {
        self.close_if(cause, |phase, _| matches!(phase, QUEUED | IDLE))
    }

    /// The same for the worker that popped the job. A cancelled one takes the way of a running one:
    /// so its contents are dropped before its awaiter is told.
    pub(crate) fn close_uncancelled(&self, cause: CloseReason) -> Option<Closed> {
        self.close_if(cause, |phase, word| {
            phase == QUEUED && word & CANCELLED == 0
        })
    }

    /// Closes a cancelled job that is queued and was never run.
    pub(crate) fn close_unbegun(&self) -> Option<Closed> {
        let is_unbegun = |phase, word| phase == QUEUED && word & BEGUN == 0;
        self.close_if(CloseReason::Cancelled, is_unbegun)
    }

    /// The runner of a cancelled job calls it, once it has dropped the work.
    pub(crate) fn end_cancelled(&self) -> JoinInterest {
        let closed = self.close_if(CloseReason::Cancelled, |_, _| true);
        closed.expect("any phase will do").interest
    }

    /// A cancel that came before is the reason.
    fn close_if(&self, cause: CloseReason, may: impl Fn(u32, u32) -> bool) -> Option<Closed> {
        let cancelled = |word| (word & CANCELLED != 0).then_some(CloseReason::Cancelled);
        let cause_of = |word| cancelled(word).unwrap_or(cause);
        let closed = |word| CLOSED + cause_of(word) as u32;
        let before = self.change_phase(|phase, word| may(phase, word).then(|| closed(word)));
        before.map(|before| Closed {
            cause: cause_of(before),
            interest: JoinInterest(before),
            was_queued: before & PHASE == QUEUED,
        })
    }

    /// Sets the cancel flag, unless the job has ended.
    ///
    /// Other threads cannot close a running job: its runner reads the flag. A job that
    /// has ended gets no flag. Otherwise code that outlives the job, with a clone of
    /// its context, would see a cancel that came after the end.
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

    /// The awaiter calls it after it has registered its waker. The thread that ends the
    /// job from now on wakes it.
    pub(crate) fn set_join_waker(&self) -> Progress {
        Self::progress_of(self.0.fetch_or(JOIN_WAKER, SeqCst))
    }

    /// Marks the `Task` as dropped, or as `detached`: no awaiter takes the output. If
    /// the job has finished already, the caller drops the output.
    pub(crate) fn set_join_dropped(&self, detached: bool) -> (Progress, JoinInterest) {
        let how = if detached { DETACHED } else { JOIN_DROPPED };
        let before = self.0.fetch_or(how, SeqCst);
        (Self::progress_of(before), JoinInterest(before))
    }

    /// Whether the job has ended: no step will run again.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.load(SeqCst) & PHASE >= FINISHED
    }
}
