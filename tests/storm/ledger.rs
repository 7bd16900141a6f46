//! The storm's own accounts: a record of each job, written by the job's work, by its captures and
//! by what awaits it. At the end of a round the lane's counters are held against them.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;

use twolane::{JoinError, JoinErrorKind};

use crate::check;
use crate::surroundings::{Item, PRIORITIES, Round};

/// Whether the lane took the job on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Entry {
    /// The call that submits it has not returned.
    #[default]
    Calling,
    Taken,
    Refused,
    /// Its captures went in the very call while the lane was closing: it was refused, or it was
    /// accepted and then closed by its own submitter.
    RefusedOrClosed,
}

/// How the work ended, as it knows itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum End {
    #[default]
    None,
    Output,
    Panic,
    /// It returned its checkpoint's error.
    Checkpoint,
}

/// What its submitter saw.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Seen {
    #[default]
    Nothing,
    Output,
    Panic,
    Cancelled,
    Expired,
    Shutdown,
    IoGone,
    /// It was refused for want of permits.
    NoPermit,
    /// Its key had enough jobs.
    KeyFull,
    Dropped,
    Detached,
}

impl Seen {
    pub(crate) fn of(error: &JoinError) -> Self {
        match () {
            () if error.is_panic() => Self::Panic,
            () if error.is_cancelled() => Self::Cancelled,
            () if error.kind() == JoinErrorKind::Expired => Self::Expired,
            () if error.kind() == JoinErrorKind::Shutdown => Self::Shutdown,
            () if error.kind() == JoinErrorKind::IoRuntimeGone => Self::IoGone,
            () if error.kind() == JoinErrorKind::QueueFull => Self::NoPermit,
            () if error.kind() == JoinErrorKind::KeyFull => Self::KeyFull,
            () => panic!("no job ends with that: {error}"),
        }
    }

    pub(crate) fn is_refusal(self) -> bool {
        matches!(self, Self::NoPermit | Self::KeyFull)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct What {
    pub(crate) level: usize,
    pub(crate) is_closure: bool,
    /// It is a future on the I/O lane: no counter knows it.
    pub(crate) is_on_io: bool,
    pub(crate) has_key: bool,
    /// It has a deadline that may come.
    pub(crate) may_expire: bool,
    /// It has Tokio tasks on the lane.
    pub(crate) has_parts: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) entry: Entry,
    pub(crate) end: End,
    pub(crate) seen: Seen,
    pub(crate) started: u8,
    pub(crate) dropped: u8,
    /// Its end was requested: by an abort, or by the drop of its task.
    pub(crate) asked: bool,
    pub(crate) gone_in_call: bool,
}

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) number: u64,
    pub(crate) what: What,
    facts: Mutex<Facts>,
}

impl Record {
    pub(crate) fn facts(&self) -> Facts {
        *self.facts.lock().unwrap()
    }

    pub(crate) fn note<T>(&self, note: impl FnOnce(&mut Facts) -> T) -> T {
        note(&mut self.facts.lock().unwrap())
    }

    pub(crate) fn see(&self, seen: Seen) {
        let before = self.note(|facts| std::mem::replace(&mut facts.seen, seen));
        assert_eq!(before, Seen::Nothing, "it ends twice: {self:?}, {seen:?}");
    }
}

/// Of one priority.
#[derive(Default)]
pub(crate) struct Level {
    /// Calls that were refused before there was a job, and waits for a permit that were given up.
    pub(crate) refused: AtomicU64,
    pub(crate) outputs_seen: AtomicU64,
    pub(crate) panics_seen: AtomicU64,
}

#[derive(Default)]
pub(crate) struct Ledger {
    records: Mutex<Vec<Arc<Record>>>,
    pub(crate) levels: [Level; 3],
    pub(crate) running_closures: AtomicUsize,
}

impl Ledger {
    pub(crate) fn records(&self) -> Vec<Arc<Record>> {
        self.records.lock().unwrap().clone()
    }

    /// All that was submitted has ended and is gone.
    pub(crate) fn is_closed(&self) -> bool {
        let is_open = |facts: Facts| facts.dropped == 0 || facts.seen == Seen::Nothing;
        let records = self.records.lock().unwrap();
        !records.iter().any(|record| is_open(record.facts()))
    }

    /// While jobs run: each result that was seen is counted, and no more ends than jobs are.
    pub(crate) fn look(&self, round: &Round) {
        for (priority, level) in PRIORITIES.into_iter().zip(&self.levels) {
            let outputs = level.outputs_seen.load(SeqCst);
            let panics = level.panics_seen.load(SeqCst);
            let now = round.cpu.with_priority(priority).metrics();
            let are_counted = now.completed >= outputs && now.panicked >= panics;
            assert!(are_counted, "{outputs} and {panics} were seen: {now:?}");
            assert!(now.submitted >= check::ends(&now), "{now:?}");
        }
    }
}

thread_local! {
    /// The job that this thread submits just now.
    static SUBMITTING: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Runs the call that submits a job. It may panic.
pub(crate) fn submitting<T>(record: &Record, call: impl FnOnce() -> T) -> thread::Result<T> {
    let before = SUBMITTING.replace(Some(record.number));
    let answer = catch_unwind(AssertUnwindSafe(call));
    SUBMITTING.set(before);
    answer
}

/// What a job has captured.
pub(crate) struct Captures {
    pub(crate) round: Arc<Round>,
    pub(crate) record: Arc<Record>,
    /// The round waits for its drop, which comes last.
    _item: Item,
}

impl Captures {
    pub(crate) fn enroll(round: &Arc<Round>, what: What) -> Self {
        let mut records = round.ledger.records.lock().unwrap();
        let record = Arc::new(Record {
            number: records.len() as u64,
            what,
            facts: Mutex::default(),
        });
        records.push(record.clone());
        Self {
            round: round.clone(),
            _item: round.live.item(record.number),
            record,
        }
    }

    /// The work starts. The answer is kept as long as it runs.
    pub(crate) fn begin(&self) -> Running {
        let before = self.record.note(|facts| {
            facts.started += 1;
            facts.started - 1
        });
        assert_eq!(before, 0, "it starts twice: {:?}", self.record);
        // The I/O lane goes on.
        let is_over = self.round.is_over.load(SeqCst) && !self.record.what.is_on_io;
        assert!(!is_over, "its lane is gone");
        let running_closures = &self.round.ledger.running_closures;
        running_closures.fetch_add(self.record.what.is_closure.into(), SeqCst);
        Running {
            round: self.round.clone(),
            record: self.record.clone(),
            has_ended: false,
        }
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        let in_call = SUBMITTING.get() == Some(self.record.number);
        self.record.note(|facts| {
            facts.dropped += 1;
            facts.gone_in_call |= in_call;
        });
    }
}

/// In the frame, or the future, of the work that runs.
pub(crate) struct Running {
    round: Arc<Round>,
    record: Arc<Record>,
    has_ended: bool,
}

impl Running {
    /// Nothing but drops comes after it.
    pub(crate) fn ends(&mut self, end: End) {
        self.has_ended = true;
        self.record.note(|facts| facts.end = end);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Else it is a future that is dropped half-way.
        if !self.has_ended && thread::panicking() {
            self.record.note(|facts| facts.end = End::Panic);
        }
        let running_closures = &self.round.ledger.running_closures;
        running_closures.fetch_sub(self.record.what.is_closure.into(), SeqCst);
    }
}

/// A call for a permit: unless it gets one, the lane counts a refusal.
pub(crate) struct Asks<'a>(&'a Level);

impl<'a> Asks<'a> {
    pub(crate) fn new(round: &'a Round, level: usize) -> Self {
        Self(&round.ledger.levels[level])
    }

    pub(crate) fn answered<T>(self, answer: Result<T, JoinError>) -> Result<T, JoinError> {
        if answer.is_ok() {
            std::mem::forget(self);
        }
        answer
    }
}

impl Drop for Asks<'_> {
    fn drop(&mut self) {
        self.0.refused.fetch_add(1, SeqCst);
    }
}
