//! What must hold at the end of a round, when nothing is under way any more.

use std::sync::atomic::Ordering::SeqCst;

use twolane::metrics::Metrics;

use crate::ledger::{End, Entry, Facts, Record, Seen};
use crate::surroundings::{PRIORITIES, Round};

/// `is_exact`: all of the lane's jobs have a record.
pub(crate) fn all(round: &Round, is_exact: bool) {
    let ledger = &round.ledger;
    let mut wrong = Vec::new();
    let records = ledger.records();
    for record in &records {
        let broken = what_is_wrong(round, record);
        if !broken.is_empty() {
            wrong.push(format!("{}: {record:?}", broken.join(", ")));
        }
    }
    if is_exact {
        for (level, priority) in PRIORITIES.into_iter().enumerate() {
            let mut own = Own::new(ledger.levels[level].refused.load(SeqCst));
            for record in records.iter().filter(|record| record.what.level == level) {
                own.count(round, record);
            }
            if priority == round.cpu.priority() && round.has_ender.load(SeqCst) {
                own.calls += 1;
                for counts in [&mut own.completed, &mut own.rejected, &mut own.dropped] {
                    counts.1 += 1;
                }
            }
            let now = round.cpu.with_priority(priority).metrics();
            wrong.extend(own.differences(&now));
        }
    }
    if ledger.running_closures.load(SeqCst) > 0 {
        wrong.push("a closure runs on".to_owned());
    }
    let sites = round.cpu.call_sites();
    if sites.keys().iter().any(|usage| usage.queued > 0) {
        wrong.push(format!("a key keeps jobs: {:?}", sites.keys()));
    }
    if !wrong.is_empty() {
        wrong.truncate(20);
        panic!("{}\n{}", crate::watchdog::report(), wrong.join("\n"));
    }
}

pub(crate) fn ends(now: &Metrics) -> u64 {
    now.completed + now.panicked + now.cancelled + now.expired + now.dropped
}

/// It may have run to its end, or to its panic, and be told to have been shut down: a job with Tokio
/// tasks on a lane that closed in the meantime.
fn may_be_cut_short(round: &Round, record: &Record, facts: Facts) -> bool {
    let has_parts = record.what.has_parts;
    let has_ended = matches!(facts.end, End::Output | End::Panic);
    has_parts && round.may_end() && has_ended
}

/// Each of these is true of a job, whatever happened.
fn what_is_wrong(round: &Round, record: &Record) -> Vec<&'static str> {
    let (what, facts) = (record.what, record.facts());
    let Facts { entry, end, .. } = facts;
    let has_started = facts.started > 0;
    let has_no_end = match end {
        End::None => !(what.is_closure && has_started),
        End::Checkpoint => true,
        End::Output | End::Panic => may_be_cut_short(round, record, facts),
    };
    let is_as_seen = match facts.seen {
        Seen::Nothing => false,
        Seen::Output => end == End::Output,
        Seen::Panic => end == End::Panic,
        Seen::Dropped | Seen::Detached => true,
        // The I/O runtime may drop it at any moment, with its lane or before.
        _ if what.is_on_io => has_no_end,
        Seen::Cancelled => has_no_end && facts.asked,
        Seen::Expired => has_no_end && what.may_expire,
        Seen::Shutdown => has_no_end && round.may_end(),
        Seen::IoGone => has_no_end && round.io_ends.load(SeqCst),
        Seen::NoPermit => !has_started && round.limits[what.level].is_some(),
        Seen::KeyFull => !has_started && what.has_key,
    };
    let is_refusal = facts.seen.is_refusal() && !what.is_on_io;
    let rules = [
        (is_as_seen, "it was seen to end in another way"),
        (facts.started <= 1, "started twice"),
        (facts.dropped == 1, "its captures are not dropped once"),
        (entry != Entry::Calling, "never submitted"),
        (entry == Entry::Taken || !has_started, "refused, and ran"),
        (!(is_refusal && entry == Entry::Taken), "taken, and refused"),
        (has_started || end == End::None, "ended without a start"),
        (
            !(what.is_closure && has_started && end == End::None),
            "a closure that did not end",
        ),
    ];
    let broken = rules.into_iter().filter(|(holds, _)| !holds);
    broken.map(|(_, wrong)| wrong).collect()
}

/// The storm's counts of one priority: at least, at most.
#[derive(Debug, Default)]
struct Own {
    calls: u64,
    completed: (u64, u64),
    panicked: (u64, u64),
    rejected: (u64, u64),
    cancelled: (u64, u64),
    expired: (u64, u64),
    dropped: (u64, u64),
}

impl Own {
    fn new(refused: u64) -> Self {
        Self {
            calls: refused,
            rejected: (refused, refused),
            ..Self::default()
        }
    }

    fn count(&mut self, round: &Round, record: &Record) {
        let (what, facts) = (record.what, record.facts());
        if what.is_on_io {
            return;
        }
        let Facts {
            entry, end, seen, ..
        } = facts;
        self.calls += 1;
        let mut add = |of: fn(&mut Self) -> &mut (u64, u64), least: bool, most: bool| {
            let sum = of(self);
            sum.0 += u64::from(least);
            sum.1 += u64::from(most);
        };
        let is_told = !matches!(seen, Seen::Dropped | Seen::Detached);
        // With an output or a panic that was seen there is no doubt.
        let is_seen = matches!(seen, Seen::Output | Seen::Panic);
        let is_in_doubt = !is_seen && may_be_cut_short(round, record, facts);
        let (is_sure, may_be) = (!is_in_doubt, !(is_in_doubt && is_told));
        let is = |it: End| (end == it && is_sure, end == it && may_be);
        let (least, most) = is(End::Output);
        add(|own| &mut own.completed, least, most);
        let (least, most) = is(End::Panic);
        add(|own| &mut own.panicked, least, most);
        let is_refused = entry == Entry::Refused || seen.is_refusal();
        let may_be_refused = is_refused || entry == Entry::RefusedOrClosed;
        add(|own| &mut own.rejected, is_refused, may_be_refused);
        let is_closed = matches!(end, End::None | End::Checkpoint) || is_in_doubt;
        if is_closed && !is_refused {
            // By the lane, for a reason that its awaiter got. Without one only those that are
            // possible are known.
            let is_taken = entry == Entry::Taken;
            let mut closed = |of, as_seen: &[Seen], may_be| {
                let is_it = as_seen.contains(&seen);
                add(of, is_it && is_taken, if is_told { is_it } else { may_be });
            };
            closed(|own| &mut own.cancelled, &[Seen::Cancelled], facts.asked);
            closed(|own| &mut own.expired, &[Seen::Expired], what.may_expire);
            closed(
                |own| &mut own.dropped,
                &[Seen::Shutdown, Seen::IoGone],
                round.may_end(),
            );
        }
    }

    fn differences(&self, now: &Metrics) -> Vec<String> {
        let within = |n: u64, (least, most): (u64, u64)| (least..=most).contains(&n);
        let rules = [
            (now.submitted == ends(now), "do not balance"),
            (now.submitted + now.rejected == self.calls, "miss a call"),
            (within(now.completed, self.completed), "completed"),
            (within(now.panicked, self.panicked), "panicked"),
            (within(now.rejected, self.rejected), "rejected"),
            (within(now.cancelled, self.cancelled), "cancelled"),
            (within(now.expired, self.expired), "expired"),
            (within(now.dropped, self.dropped), "dropped"),
        ];
        let broken = rules.into_iter().filter(|(holds, _)| !holds);
        let tell = |(_, wrong)| format!("the counters, {wrong}: {now}, but {self:?}");
        broken.map(tell).collect()
    }
}
