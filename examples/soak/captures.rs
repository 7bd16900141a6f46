//! What each job has captured: it writes the job's record when the work starts,
//! ends and is dropped.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use twolane::JobContext;

use super::held::Held;
use super::ledger::{End, Ledger, Record};

thread_local! {
    /// The job that this thread submits just now.
    static SUBMITTING: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Runs the call that submits job `id`.
pub fn submitting<R>(id: u32, call: impl FnOnce() -> R) -> R {
    let before = SUBMITTING.replace(Some(id));
    let result = call();
    SUBMITTING.set(before);
    result
}

pub struct Captures {
    pub ledger: Arc<Ledger>,
    pub id: u32,
}

impl Captures {
    pub fn new(ledger: Arc<Ledger>, id: u32) -> Self {
        Self { ledger, id }
    }

    pub fn record(&self) -> &Record {
        self.ledger.record(self.id)
    }

    /// What the job's context says, if it was handed one. That it is unwanted has
    /// to have a reason.
    pub fn is_wanted(&self, context: Option<&JobContext>) -> bool {
        let wanted = context.is_none_or(|job| job.checkpoint().is_ok());
        let record = self.record();
        let has_reason =
            record.asked.load(SeqCst) || record.what().may_expire || self.ledger.lane_may_close();
        if !wanted && !has_reason {
            let id = self.id;
            self.ledger
                .fail(format!("job {id}: its context says that it is unwanted"));
        }
        wanted
    }

    /// The work starts. The answer lives as long as it runs.
    pub fn begin(&self) -> Running {
        let record = self.record();
        if record.started.fetch_add(1, SeqCst) > 0 {
            self.ledger.fail(format!("job {} started twice", self.id));
        }
        if self.ledger.endings.is_over() {
            let id = self.id;
            self.ledger
                .fail(format!("job {id} started after the lane was gone"));
        }
        let is_closure = !record.what().kind.is_future();
        if is_closure {
            self.ledger.running_closures.fetch_add(1, SeqCst);
        }
        Running {
            ledger: self.ledger.clone(),
            id: self.id,
            is_closure,
            finished: false,
        }
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        let record = self.record();
        record.captures_dropped.fetch_add(1, SeqCst);
        let in_call = SUBMITTING.get() == Some(self.id);
        if in_call {
            record.gone_in_call.store(true, SeqCst);
        }
        self.ledger.watchdog.beat();
        // Not where it is the submitter's own to catch.
        if record.what().kind.captures_panic() && !in_call && !std::thread::panicking() {
            if record.end() == End::Output {
                // It is dropped at the end of the work, and part of it.
                record.set_end(End::Panic);
            }
            panic!("soak: the destructor of captures");
        }
    }
}

/// In the frame, or the future, of the work that runs.
pub struct Running {
    ledger: Arc<Ledger>,
    id: u32,
    is_closure: bool,
    finished: bool,
}

impl Running {
    /// The work is done; what it has captured is dropped next, and may panic.
    pub fn finished(&mut self) {
        self.finished = true;
        self.ledger.record(self.id).set_end(End::Output);
    }

    /// Made last of all: what becomes of a return value where a destructor panics
    /// behind it is the compiler's.
    pub fn answer(self, child: Option<Held>) -> Answer {
        self.ledger.outputs.fetch_add(1, SeqCst);
        Answer {
            ledger: self.ledger.clone(),
            id: self.id,
            child,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.finished && std::thread::panicking() {
            self.ledger.record(self.id).set_end(End::Panic);
        }
        // Else it is a future that is dropped half-way.
        if self.is_closure {
            self.ledger.running_closures.fetch_sub(1, SeqCst);
        }
    }
}

/// The output of a job.
pub struct Answer {
    ledger: Arc<Ledger>,
    pub id: u32,
    /// A job that this one has spawned.
    pub child: Option<Held>,
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.ledger.outputs.fetch_sub(1, SeqCst);
    }
}
