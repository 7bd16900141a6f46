//! How many jobs ended in which way, over all rounds.

use std::sync::atomic::Ordering::SeqCst;

use super::ledger::{End, Entry, Ledger, Seen};

#[derive(Default)]
pub struct Tally {
    /// By what was seen: all of them, those that had started, those that ran to
    /// their end, those that panicked.
    by_seen: [[u64; 4]; Seen::ALL.len()],
    pub futures: u64,
    pub refused: u64,
    pub failed_admissions: u64,
    pub half_admissions: u64,
    pub early_ends: u64,
    pub io_deaths: u64,
}

impl Tally {
    pub fn of(ledger: &Ledger) -> Self {
        let mut tally = Self::default();
        for record in ledger.records() {
            let row = &mut tally.by_seen[record.seen() as usize];
            row[0] += 1;
            row[1] += u64::from(record.started.load(SeqCst) > 0);
            row[2] += u64::from(record.end() == End::Output);
            row[3] += u64::from(record.end() == End::Panic);
            tally.futures += u64::from(record.what().kind.is_future());
            tally.refused += u64::from(record.entry() != Entry::Taken);
        }
        let failed = ledger.levels.iter().map(|level| &level.failed_admissions);
        tally.failed_admissions = failed.map(|count| count.load(SeqCst)).sum();
        tally.half_admissions = ledger.half_admissions.load(SeqCst);
        tally.early_ends = ledger.plan.ends_at.is_some().into();
        tally.io_deaths = ledger.plan.io_dies_at.is_some().into();
        tally
    }

    pub fn add(&mut self, other: &Self) {
        let rows = self.by_seen.iter_mut().flatten();
        for (mine, theirs) in rows.zip(other.by_seen.iter().flatten()) {
            *mine += theirs;
        }
        self.futures += other.futures;
        self.refused += other.refused;
        self.failed_admissions += other.failed_admissions;
        self.half_admissions += other.half_admissions;
        self.early_ends += other.early_ends;
        self.io_deaths += other.io_deaths;
    }

    pub fn jobs(&self) -> u64 {
        self.by_seen.iter().map(|row| row[0]).sum()
    }

    pub fn print(&self) {
        println!(
            "{:<14} {:>11} {:>11} {:>11} {:>11}",
            "seen as", "jobs", "started", "finished", "panicked"
        );
        for (seen, row) in Seen::ALL.into_iter().zip(&self.by_seen) {
            // Nothing, and what can't be, have no row unless there is a failure.
            if row[0] > 0 {
                let [all, started, finished, panicked] = row;
                println!(
                    "{:<14} {all:>11} {started:>11} {finished:>11} {panicked:>11}",
                    format!("{seen:?}")
                );
            }
        }
        println!(
            "{} jobs, {} of them futures, {} refused; without a job: {} refused admissions, \
             {} left half-way.\nLanes shut down in the middle: {}; I/O runtimes that died there: {}.",
            self.jobs(),
            self.futures,
            self.refused,
            self.failed_admissions,
            self.half_admissions,
            self.early_ends,
            self.io_deaths
        );
    }
}
