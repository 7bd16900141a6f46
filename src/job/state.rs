//! The life of one job, as one atomic byte.
//!
//! ```text
//!            start            finish               claim
//!   QUEUED ---------> RUNNING --------> FINISHED ---------> CLAIMED
//!    ^ |              |  ^ | wake
//!    | | close   pause|  | v
//!    | |              |  WOKEN   (counts as running; pause puts it back in the queue)
//!    | v    close     v
//!    | CLOSED <------ IDLE       (CLOSED is one of the causes)
//!    |                 | wake
//!    +-----------------+
//! ```
//!
//! The byte says who may touch what, so that nobody ever waits for anybody:
//!
//! - QUEUED: exactly one reference to the job is in a queue. Whoever takes it
//!   out calls [`State::start`] and, if it answers [`Start::Run`], owns the
//!   job's work until it calls `finish`, `pause` or `close_running`.
//! - RUNNING, WOKEN: the work belongs to the thread that runs it.
//! - IDLE: the work rests; a wake queues it again.
//! - FINISHED: the output rests. [`State::claim`] gives it to one caller.
//! - CLOSED: there will be no output, and the awaiting side may be told so at
//!   once. The work is dropped by whoever takes the reference out of the queue
//!   (closed from QUEUED), by the one who closed it (from IDLE), or has been
//!   dropped already (from RUNNING).
//!
//! `cancel_wanted` stands beside it because a running job can't be closed from
//! outside: the runner looks at it after each step. A canceller sets it and
//! then tries `close`; the runner pauses and then looks. Both have a `SeqCst`
//! fence in between, so one of the two sees the other (loom model in
//! `tests/loom.rs`). The lane's `closed` works the same way.

use crate::sync::{AtomicBool, AtomicU8, Ordering::SeqCst, fence};

const QUEUED: u8 = 0;
const RUNNING: u8 = 1;
const WOKEN: u8 = 2;
const IDLE: u8 = 3;
const FINISHED: u8 = 4;
const CLAIMED: u8 = 5;
const CANCELLED: u8 = 6;
const SHUT_DOWN: u8 = 7;
const IO_GONE: u8 = 8;
const NO_THREADS: u8 = 9;

/// Why a job was closed without an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Cancelled = CANCELLED as isize,
    ShutDown = SHUT_DOWN as isize,
    IoRuntimeGone = IO_GONE as isize,
    NoThreads = NO_THREADS as isize,
}

/// What a thread that took the job out of a queue shall do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Run it: the work is yours.
    Run,
    /// It was closed while it was queued: drop the work.
    Discard,
    /// It is not queued (a spurious poll of a Tokio task): leave it alone.
    NotQueued,
}

/// What the runner of a step without an output shall do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Paused {
    /// Nothing: the job rests until it is woken, or somebody else has it.
    Rest,
    /// Put it into the queue: it was woken while it ran.
    Requeue,
    /// Drop the work and tell the awaiting side: it is closed. (If a waker came
    /// first, a reference in the queue will find nothing left to do.)
    Discard(Cause),
}

/// What a call of [`State::close`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// Closed; its reference in the queue will come to a lane thread.
    WasQueued,
    /// Closed; the work is the caller's to drop (or to have dropped).
    WasIdle,
    /// Running, or ended already: nothing changed.
    No,
}

/// What an awaiting side finds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    NotYet,
    /// The output is the caller's, and nobody else's.
    Output,
    Closed(Cause),
    /// Somebody claimed the output before.
    Gone,
}

#[derive(Debug)]
pub(crate) struct State {
    phase: AtomicU8,
    cancel_wanted: AtomicBool,
}

impl State {
    pub(crate) fn queued() -> Self {
        Self::at(QUEUED)
    }

    /// For work that never waits in a queue of ours.
    pub(crate) fn running() -> Self {
        Self::at(RUNNING)
    }

    pub(crate) fn refused(cause: Cause) -> Self {
        Self::at(cause as u8)
    }

    fn at(phase: u8) -> Self {
        Self {
            phase: AtomicU8::new(phase),
            cancel_wanted: AtomicBool::new(false),
        }
    }

    fn step(&self, from: u8, to: u8) -> Result<(), u8> {
        self.phase
            .compare_exchange(from, to, SeqCst, SeqCst)
            .map(drop)
    }

    pub(crate) fn start(&self) -> Start {
        match self.step(QUEUED, RUNNING) {
            Ok(()) => Start::Run,
            Err(CANCELLED | SHUT_DOWN | IO_GONE | NO_THREADS) => Start::Discard,
            Err(_) => Start::NotQueued,
        }
    }

    /// The runner's, after a step without an output. The work must be back in
    /// its place before. `must_close` says whether the job was cancelled, or
    /// its lane closed, while it ran: whoever did that could not close it, and
    /// may have looked before it rested.
    pub(crate) fn pause(&self, must_close: impl FnOnce() -> Option<Cause>) -> Paused {
        let woken = self.step(RUNNING, IDLE).is_err();
        if woken {
            self.phase.store(QUEUED, SeqCst);
        }
        fence(SeqCst);
        match must_close() {
            Some(cause) if self.close(cause) != Close::No => Paused::Discard(cause),
            _ if woken => Paused::Requeue,
            _ => Paused::Rest,
        }
    }

    /// The runner's. The output must be in its place before.
    pub(crate) fn finish(&self) {
        self.phase.store(FINISHED, SeqCst);
    }

    /// As [`finish`](Self::finish), where a [`close_running`](Self::close_running)
    /// from outside may have come first; says whether the output counts.
    pub(crate) fn try_finish(&self) -> bool {
        self.step(RUNNING, FINISHED).is_ok()
    }

    /// The runner's (or, for work outside our queues, anyone's): no output
    /// will come. Says whether this call closed it.
    pub(crate) fn close_running(&self, cause: Cause) -> bool {
        self.step(RUNNING, cause as u8).is_ok() || self.step(WOKEN, cause as u8).is_ok()
    }

    /// Says whether the caller must put the job into the queue.
    pub(crate) fn wake(&self) -> bool {
        let mut phase = self.phase.load(SeqCst);
        loop {
            let (to, enqueue) = match phase {
                IDLE => (QUEUED, true),
                RUNNING => (WOKEN, false),
                _ => return false,
            };
            match self.step(phase, to) {
                Ok(()) => return enqueue,
                Err(now) => phase = now,
            }
        }
    }

    /// Closes the job from outside, unless it runs or has ended.
    pub(crate) fn close(&self, cause: Cause) -> Close {
        let mut phase = self.phase.load(SeqCst);
        loop {
            let found = match phase {
                QUEUED => Close::WasQueued,
                IDLE => Close::WasIdle,
                _ => return Close::No,
            };
            match self.step(phase, cause as u8) {
                Ok(()) => return found,
                Err(now) => phase = now,
            }
        }
    }

    pub(crate) fn want_cancel(&self) {
        self.cancel_wanted.store(true, SeqCst);
        fence(SeqCst);
    }

    pub(crate) fn cancel_is_wanted(&self) -> bool {
        self.cancel_wanted.load(SeqCst)
    }

    pub(crate) fn claim(&self) -> Claim {
        match self.step(FINISHED, CLAIMED) {
            Ok(()) => Claim::Output,
            Err(CLAIMED) => Claim::Gone,
            Err(CANCELLED) => Claim::Closed(Cause::Cancelled),
            Err(SHUT_DOWN) => Claim::Closed(Cause::ShutDown),
            Err(IO_GONE) => Claim::Closed(Cause::IoRuntimeGone),
            Err(NO_THREADS) => Claim::Closed(Cause::NoThreads),
            Err(_) => Claim::NotYet,
        }
    }

    /// No step will ever run again.
    pub(crate) fn has_ended(&self) -> bool {
        self.phase.load(SeqCst) >= FINISHED
    }
}
