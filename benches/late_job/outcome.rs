//! What a run found, and the figures of it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::contender::Entry;
use crate::support::quantile;

/// A small job's times since the start of its run.
pub struct Late {
    pub intended: Duration,
    pub submitted: Duration,
    /// By its own clock, in its last line.
    pub ended: Duration,
    /// When a task of the I/O runtime had its result.
    pub awaited: Option<Duration>,
}

pub struct Outcome {
    /// Since the start, in the order of submission.
    pub long_ends: Vec<Duration>,
    pub late: Vec<Late>,
    /// Cores that others had meanwhile, if the system tells.
    pub others: Option<f64>,
}

/// From when to when a small job's latency counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Count {
    Intended,
    Submission,
    IntendedToAwaited,
    SubmissionToAwaited,
    /// How late the source was.
    Source,
}

/// Figures of one way to count, in milliseconds.
#[derive(Clone, Copy)]
pub struct Tail {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

impl Count {
    pub const ALL: [Self; 5] = [
        Self::Intended,
        Self::Submission,
        Self::IntendedToAwaited,
        Self::SubmissionToAwaited,
        Self::Source,
    ];

    /// As the report calls it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Intended => "late",
            Self::Submission => "late_from_submission",
            Self::IntendedToAwaited => "late_awaited",
            Self::SubmissionToAwaited => "late_awaited_from_submission",
            Self::Source => "source_late",
        }
    }

    fn of(self, late: &Late) -> Option<f64> {
        let (from, to) = match self {
            Self::Intended => (late.intended, Some(late.ended)),
            Self::Submission => (late.submitted, Some(late.ended)),
            Self::IntendedToAwaited => (late.intended, late.awaited),
            Self::SubmissionToAwaited => (late.submitted, late.awaited),
            Self::Source => (late.intended, Some(late.submitted)),
        };
        Some(to?.saturating_sub(from).as_secs_f64() * 1e3)
    }
}

impl Outcome {
    /// Seconds until the last long job has ended.
    pub fn total(&self) -> Option<f64> {
        self.long_ends.iter().max().map(Duration::as_secs_f64)
    }

    /// Seconds until the first long job has ended.
    pub fn first(&self) -> Option<f64> {
        self.long_ends.iter().min().map(Duration::as_secs_f64)
    }

    pub fn tail(&self, count: Count) -> Option<Tail> {
        let values: Option<Vec<f64>> = self.late.iter().map(|late| count.of(late)).collect();
        let values = values?;
        let at = |q| quantile(values.iter().copied(), q);
        Some(Tail {
            p50: at(0.5),
            p99: at(0.99),
            max: at(1.0),
        })
    }

    /// Small jobs that were meant to arrive when no long one was left: they
    /// say nothing.
    pub fn too_late(&self) -> usize {
        let last = self.long_ends.iter().max();
        let is_over = |late: &&Late| last.is_some_and(|last| late.intended > *last);
        self.late.iter().filter(is_over).count()
    }
}

/// All runs, by row; a row's are in the order of the rounds.
#[derive(Default)]
pub struct Found(BTreeMap<Entry, Vec<Outcome>>);

impl Found {
    pub fn add(&mut self, entry: Entry, outcome: Outcome) {
        self.0.entry(entry).or_default().push(outcome);
    }

    pub fn of(&self, entry: Entry) -> &[Outcome] {
        self.0.get(&entry).map_or(&[], Vec::as_slice)
    }

    /// One figure of each round; none if a round lacks it.
    pub fn figures(
        &self,
        entry: Entry,
        figure: impl Fn(&Outcome) -> Option<f64>,
    ) -> Option<Vec<f64>> {
        let figures: Option<Vec<f64>> = self.of(entry).iter().map(figure).collect();
        figures.filter(|figures| !figures.is_empty())
    }
}
