//! The soak's own accounts of one round: a record of each job, in a table that is
//! there before the first. A check that finds something wrong reports it here.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use twolane::Handle;

use super::captures::Captures;
use super::ending::{Ending, Endings};
use super::kinds::Kind;
use super::plan::Plan;
use super::watchdog::Watchdog;

/// Whether the lane took the job on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Entry {
    /// The call that submits has not returned.
    Calling,
    Taken,
    Refused,
    /// Its captures went in the very call, and the lane was being shut down: it
    /// was refused, or was accepted and then closed by its own submitter.
    RefusedOrClosed,
}

/// How the work ended, as it knows itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum End {
    None,
    Output,
    Panic,
}

/// What the submitter saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Seen {
    Nothing,
    Output,
    Panic,
    Cancelled,
    Expired,
    Shutdown,
    IoGone,
    QueueFull,
    Dropped,
    Detached,
    /// What can't be here.
    Wrong,
}

impl Seen {
    pub const ALL: [Self; 11] = [
        Self::Nothing,
        Self::Output,
        Self::Panic,
        Self::Cancelled,
        Self::Expired,
        Self::Shutdown,
        Self::IoGone,
        Self::QueueFull,
        Self::Dropped,
        Self::Detached,
        Self::Wrong,
    ];
}

#[derive(Default)]
pub struct Record {
    /// Set once, when the job is enrolled.
    what: OnceLock<What>,
    pub started: AtomicU8,
    pub captures_dropped: AtomicU8,
    /// Its end was requested: by a cancel, an abort, or a dropped task.
    pub asked: AtomicBool,
    /// The captures went in the call that submits, on its thread.
    pub gone_in_call: AtomicBool,
    entry: AtomicU8,
    end: AtomicU8,
    seen: AtomicU8,
}

#[derive(Clone, Copy, Debug)]
pub struct What {
    pub kind: Kind,
    pub level: usize,
    /// It has a deadline that may come.
    pub may_expire: bool,
}

impl Record {
    pub fn what(&self) -> What {
        *self.what.get().expect("it was enrolled")
    }

    pub fn entry(&self) -> Entry {
        use Entry::*;
        [Calling, Taken, Refused, RefusedOrClosed][usize::from(self.entry.load(SeqCst))]
    }

    pub fn set_entry(&self, entry: Entry) {
        self.entry.store(entry as u8, SeqCst);
    }

    pub fn end(&self) -> End {
        [End::None, End::Output, End::Panic][usize::from(self.end.load(SeqCst))]
    }

    pub fn set_end(&self, end: End) {
        self.end.store(end as u8, SeqCst);
    }

    pub fn seen(&self) -> Seen {
        Seen::ALL[usize::from(self.seen.load(SeqCst))]
    }

    /// False if something was seen before.
    pub fn see(&self, seen: Seen) -> bool {
        self.seen.swap(seen as u8, SeqCst) == Seen::Nothing as u8
    }
}

/// Of one priority.
#[derive(Default)]
pub struct LevelCounts {
    /// Calls that ended without a job, and before there was one.
    pub failed_admissions: AtomicU64,
    /// Submitters that wait for a permit, or were dropped while they did.
    pub waiting: AtomicU64,
    pub seen_outputs: AtomicU64,
    pub seen_panics: AtomicU64,
}

pub struct Ledger {
    pub seed: u64,
    pub plan: Plan,
    /// By priority: high, normal, low.
    pub handles: [Handle; 3],
    /// Of the runtime that outlives the round.
    pub io: tokio::runtime::Handle,
    pub watchdog: Arc<Watchdog>,
    records: Box<[Record]>,
    next: AtomicU32,
    /// Submitters go on until so many jobs are enrolled.
    wanted: AtomicU32,
    pub levels: [LevelCounts; 3],
    pub half_admissions: AtomicU64,
    pub running_closures: AtomicU64,
    pub outputs: AtomicU64,
    /// Futures of the soak's own that go on by the side.
    pub asides: AtomicUsize,
    pub endings: Endings,
    failures: Mutex<Vec<String>>,
}

impl Ledger {
    pub fn new(
        seed: u64,
        plan: Plan,
        handles: [Handle; 3],
        io: tokio::runtime::Handle,
        watchdog: Arc<Watchdog>,
        endings: Endings,
    ) -> Arc<Self> {
        // Jobs spawn others after the submitters have stopped.
        let room = plan.jobs + plan.jobs / 4 + 200;
        Arc::new(Self {
            seed,
            wanted: AtomicU32::new(plan.jobs),
            plan,
            handles,
            io,
            watchdog,
            records: (0..room).map(|_| Record::default()).collect(),
            next: AtomicU32::new(0),
            levels: Default::default(),
            half_admissions: AtomicU64::new(0),
            running_closures: AtomicU64::new(0),
            outputs: AtomicU64::new(0),
            asides: AtomicUsize::new(0),
            endings,
            failures: Mutex::default(),
        })
    }

    /// Opens a record; none if the table is full.
    pub fn enroll(self: &Arc<Self>, what: What) -> Option<Captures> {
        let id = self.next.fetch_add(1, SeqCst);
        let record = self.records.get(id as usize)?;
        record.what.set(what).expect("each number is given once");
        Ending::look(self, id);
        Some(Captures::new(self.clone(), id))
    }

    /// What the lane has taken on may end with "shut down".
    pub fn lane_may_close(&self) -> bool {
        self.endings.lane_may_close(self.plan.on_rayon())
    }

    pub fn record(&self, id: u32) -> &Record {
        &self.records[id as usize]
    }

    pub fn records(&self) -> &[Record] {
        let enrolled = self.next.load(SeqCst) as usize;
        &self.records[..enrolled.min(self.records.len())]
    }

    pub fn wants_more(&self) -> bool {
        self.next.load(Relaxed) < self.wanted.load(Relaxed)
    }

    /// From now on all are refused: some more of these are enough.
    pub fn want_few_more(&self) {
        let few = self.next.load(SeqCst).saturating_add(100);
        self.wanted.fetch_min(few, SeqCst);
    }

    pub fn fail(&self, what: impl Into<String>) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.push(what.into());
    }

    pub fn take_failures(&self) -> Vec<String> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut failures)
    }

    /// Runs a future of the soak's own on the runtime that outlives the round.
    pub fn aside(self: &Arc<Self>, future: impl Future<Output = ()> + Send + 'static) {
        let aside = Aside::new(self);
        self.io.spawn(async move {
            let _aside = aside;
            future.await;
        });
    }

    /// A text for the report of a hang.
    pub fn describe(&self) -> String {
        let mut told = format!(
            "TWOLANE_SEED={} {:?}\n{:?}\nrunning closures {}, asides {}\n{:?}\n",
            self.seed,
            self.plan,
            self.endings,
            self.running_closures.load(SeqCst),
            self.asides.load(SeqCst),
            self.handles[1],
        );
        for (handle, level) in self.handles.iter().zip(&self.levels) {
            let waiting = level.waiting.load(SeqCst);
            let (priority, metrics) = (handle.priority(), handle.metrics());
            told += &format!("{priority:?}: {waiting} wait for a permit, {metrics:?}\n");
        }
        let records = self.records();
        let open = |record: &&Record| {
            record.what.get().is_some()
                && (record.captures_dropped.load(SeqCst) == 0 || record.seen() == Seen::Nothing)
        };
        let open: Vec<_> = records
            .iter()
            .enumerate()
            .filter(|(_, r)| open(r))
            .collect();
        told += &format!("{} jobs, of which open: {}\n", records.len(), open.len());
        for (id, record) in open.into_iter().take(40) {
            told += &self.describe_job(id, record);
        }
        told
    }

    pub fn describe_job(&self, id: usize, record: &Record) -> String {
        format!(
            "job {id}: {:?}, {:?}, started {}, ended {:?}, captures dropped {}, asked to end {}, seen {:?}\n",
            record.what.get(),
            record.entry(),
            record.started.load(SeqCst),
            record.end(),
            record.captures_dropped.load(SeqCst),
            record.asked.load(SeqCst),
            record.seen(),
        )
    }
}

/// Something of the soak's own that is under way.
pub struct Aside(Arc<Ledger>);

impl Aside {
    pub fn new(ledger: &Arc<Ledger>) -> Self {
        ledger.asides.fetch_add(1, SeqCst);
        Self(ledger.clone())
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.0.asides.fetch_sub(1, SeqCst);
    }
}
