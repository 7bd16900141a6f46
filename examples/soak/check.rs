//! What must hold at the end of a round, when nothing is under way any more.

use std::sync::atomic::Ordering::SeqCst;

use twolane::metrics::Metrics;

use super::kinds::Kind;
use super::ledger::{End, Entry, Ledger, Record, Seen};
use super::plan::PRIORITIES;

pub fn all(ledger: &Ledger) {
    for (id, record) in ledger.records().iter().enumerate() {
        let wrong = what_is_wrong(ledger, record);
        if !wrong.is_empty() {
            let job = ledger.describe_job(id, record);
            ledger.fail(format!("{}: {job}", wrong.join(", ")));
        }
    }
    for level in 0..PRIORITIES.len() {
        counters(ledger, level);
    }
    let unread = ledger.outputs.load(SeqCst);
    if unread != 0 {
        ledger.fail(format!("{unread} outputs were never dropped"));
    }
    let running = ledger.running_closures.load(SeqCst);
    if running != 0 {
        ledger.fail(format!("{running} closures run on"));
    }
}

/// Whether it may have run to its end and have no output all the same: a job with Tokio
/// tasks on the lane, which closed in the meantime.
fn may_be_cut_short(ledger: &Ledger, record: &Record) -> bool {
    let has_parts = record.what().kind == Kind::TokioSpawn && !ledger.plan.on_rayon();
    has_parts && ledger.lane_may_close() && record.end() == End::Output
}

/// Each of these is true of a job, whatever happened.
fn what_is_wrong(ledger: &Ledger, record: &Record) -> Vec<&'static str> {
    let what = record.what();
    let (entry, end, seen) = (record.entry(), record.end(), record.seen());
    let started = record.started.load(SeqCst);
    let has_started = started > 0;
    let endings = &ledger.endings;
    let is_closure = !what.kind.is_future();
    // For what it says if the job has no output and never will have.
    let has_no_end =
        (end == End::None && !(is_closure && has_started)) || may_be_cut_short(ledger, record);
    let claims = match seen {
        Seen::Nothing => (false, "without an answer"),
        Seen::Wrong => (false, "an answer that can't be"),
        Seen::Output => (end == End::Output, "an output, but it has none"),
        Seen::Panic => (end == End::Panic && what.kind.may_panic(), "no such panic"),
        Seen::Cancelled => (
            has_no_end && record.asked.load(SeqCst),
            "not cancelled, or without a request",
        ),
        Seen::Expired => (
            has_no_end && what.may_expire,
            "not expired, or without a deadline",
        ),
        Seen::Shutdown => (
            has_no_end && ledger.lane_may_close(),
            "no shutdown, or it ended before",
        ),
        Seen::IoGone => (
            !has_started && endings.io_dies(),
            "the I/O runtime is not gone, or it was taken on",
        ),
        Seen::QueueFull => (
            !has_started && ledger.plan.is_limited(what.level),
            "taken on, or there is no limit",
        ),
        Seen::Dropped | Seen::Detached => (true, ""),
    };
    let entry_is_told = matches!(seen, Seen::QueueFull | Seen::IoGone) && entry == Entry::Taken;
    let rules = [
        claims,
        (started <= 1, "started more than once"),
        (
            record.captures_dropped.load(SeqCst) == 1,
            "captures not dropped once",
        ),
        (entry != Entry::Calling, "never submitted"),
        (entry == Entry::Taken || !has_started, "refused, and ran"),
        (!entry_is_told, "taken on, though it says it was not"),
        (has_started || end == End::None, "ended, but never started"),
        (
            !(is_closure && has_started && end == End::None),
            "a closure that did not end",
        ),
    ];
    let broken = rules.into_iter().filter(|(holds, _)| !holds);
    broken.map(|(_, wrong)| wrong).collect()
}

/// The soak's counts of one priority.
#[derive(Debug, Default)]
struct Own {
    calls: u64,
    panicked: u64,
    /// At least, at most.
    completed: (u64, u64),
    rejected: (u64, u64),
    cancelled: (u64, u64),
    expired: (u64, u64),
    dropped: (u64, u64),
}

impl Own {
    fn of(ledger: &Ledger, level: usize) -> Self {
        // A submitter that still waits was dropped with its runtime.
        let waits = &ledger.levels[level];
        let failed = waits.failed_admissions.load(SeqCst) + waits.waiting.load(SeqCst);
        let mut own = Self {
            calls: failed,
            rejected: (failed, failed),
            ..Self::default()
        };
        let of_level = |record: &&Record| record.what().level == level;
        for record in ledger.records().iter().filter(of_level) {
            own.count(ledger, record);
        }
        own
    }

    fn count(&mut self, ledger: &Ledger, record: &Record) {
        let one = u64::from;
        let (entry, seen) = (record.entry(), record.seen());
        self.calls += 1;
        // A job that ran to its end is counted by that, with or without an awaiter.
        let has_output = record.end() == End::Output;
        let is_told = !matches!(seen, Seen::Dropped | Seen::Detached);
        let is_in_doubt = seen != Seen::Output && may_be_cut_short(ledger, record);
        self.completed.0 += one(has_output && !is_in_doubt);
        self.completed.1 += one(has_output && !(is_in_doubt && is_told));
        self.panicked += one(record.end() == End::Panic);
        let is_refused = entry == Entry::Refused || matches!(seen, Seen::QueueFull | Seen::IoGone);
        self.rejected.0 += one(is_refused);
        self.rejected.1 += one(is_refused || entry == Entry::RefusedOrClosed);
        // What the lane closed: an awaiter gets the reason. Without an awaiter only the
        // possible reasons are known.
        if is_refused || !(record.end() == End::None || is_in_doubt) {
            return;
        }
        let is_taken = entry == Entry::Taken;
        let bounds = |of: Seen, may_be: bool| {
            let is_it = seen == of;
            (
                one(is_it && is_taken),
                one(if is_told { is_it } else { may_be }),
            )
        };
        let asked = record.asked.load(SeqCst);
        for (sum, (least, most)) in [
            (&mut self.cancelled, bounds(Seen::Cancelled, asked)),
            (
                &mut self.expired,
                bounds(Seen::Expired, record.what().may_expire),
            ),
            (
                &mut self.dropped,
                bounds(Seen::Shutdown, ledger.lane_may_close()),
            ),
        ] {
            sum.0 += least;
            sum.1 += most;
        }
    }
}

/// Checks the lane's counters against the soak's ledger.
fn counters(ledger: &Ledger, level: usize) {
    let metrics = ledger.handles[level].metrics();
    let own = Own::of(ledger, level);
    let within = |n: u64, (least, most): (u64, u64)| (least..=most).contains(&n);
    let Metrics {
        submitted,
        rejected,
        completed,
        panicked,
        cancelled,
        expired,
        dropped,
        queued,
        running,
        suspended,
        ..
    } = metrics;
    let rules = [
        (
            submitted == completed + panicked + cancelled + expired + dropped,
            "do not balance",
        ),
        (
            (queued, running, suspended) == (0, 0, 0),
            "have jobs under way",
        ),
        (
            submitted + rejected == own.calls,
            "miss a call, or have one more",
        ),
        (within(completed, own.completed), "have other outputs"),
        (panicked == own.panicked, "have other panics"),
        (within(rejected, own.rejected), "have other refusals"),
        (within(cancelled, own.cancelled), "have other cancels"),
        (within(expired, own.expired), "have other missed deadlines"),
        (within(dropped, own.dropped), "have other jobs dropped"),
    ];
    for (_, wrong) in rules.into_iter().filter(|(holds, _)| !holds) {
        let priority = PRIORITIES[level];
        ledger.fail(format!(
            "{priority:?}: the counters {wrong}: {metrics:?}, but {own:?}"
        ));
    }
}
