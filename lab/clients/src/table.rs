//! The table, a line for each row under each set of conditions.

use std::fmt;

use crate::lanes::Side;
use crate::rows::{Mark, Shows};
use crate::trial::{Outcome, Setup};

/// A line: a client, a way, where the jobs ran, the conditions, and what happened in
/// each round.
pub struct Line {
    pub client: &'static str,
    pub way: &'static str,
    /// None for the two plain runtimes, which are there to compare with.
    pub mark: Option<Mark>,
    pub side: Side,
    pub setup: Setup,
    pub rounds: Vec<Outcome>,
}

impl Line {
    pub fn sum(&self, of: impl Fn(&Outcome) -> usize) -> usize {
        self.rounds.iter().map(of).sum()
    }

    /// Of the requests of the I/O side, all rounds.
    pub fn latency(&self, q: f64) -> f64 {
        let rounds = self.rounds.iter();
        let mut all: Vec<f64> = rounds.flat_map(|round| &round.latencies).copied().collect();
        all.sort_by(f64::total_cmp);
        Outcome::quantile(&all, q)
    }

    /// The median of the rounds' own.
    pub fn resume(&self, q: f64) -> f64 {
        let rounds = self.rounds.iter();
        let mut each: Vec<f64> = rounds
            .map(|round| Outcome::quantile(&round.resumes, q))
            .collect();
        each.sort_by(f64::total_cmp);
        Outcome::quantile(&each, 0.5)
    }

    /// Whether a panic, anywhere, or a stall is in it.
    pub fn panics(&self) -> usize {
        self.sum(|round| round.job_panics + round.request_panics)
    }

    pub fn stalls(&self) -> usize {
        self.sum(|round| round.stalls)
    }

    /// Errors that no cut explains, and jobs that hung.
    pub fn failures(&self) -> usize {
        let errors = match self.setup.cuts {
            true => 0,
            false => self.sum(|round| round.request_errors + round.job_errors),
        };
        errors + self.sum(|round| round.hung)
    }

    pub fn is_clean(&self) -> bool {
        self.panics() + self.stalls() + self.failures() == 0
    }

    /// How the guide says that it fails, if it warns of it.
    pub fn shows(&self) -> Option<Shows> {
        match self.mark? {
            Mark::Warned(shows) => Some(shows),
            Mark::Recommended | Mark::Tolerated => None,
        }
    }

    /// Whether it fails so here.
    pub fn has_shown(&self, shows: Shows) -> bool {
        match shows {
            Shows::Stalls => self.stalls() > 0,
            Shows::JobPanics => self.sum(|round| round.job_panics) > 0,
            Shows::RequestPanics => self.sum(|round| round.request_panics) > 0,
        }
    }
}

/// The first two lines.
pub fn head() -> String {
    let head = format!(
        "| {:<68} | {:<12} | {:>4} | {:<8} | {:>9} | {:>6} | {:>9} | {:>6} | {:>9} | {:>6} | {:>6} | {:>6} | {:>6} | {:>6} |",
        "client, way",
        "jobs on",
        "jobs",
        "pool",
        "requests",
        "stalls",
        "panicked",
        "failed",
        "jobs run",
        "panic",
        "p50 ms",
        "p99",
        "max",
        "resume",
    );
    let rule: String = head
        .chars()
        .map(|c| if c == '|' { '|' } else { '-' })
        .collect();
    format!("{head}\n{rule}")
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.mark {
            None => "",
            Some(Mark::Recommended) if self.is_clean() => "recommended: ",
            Some(Mark::Recommended) => "RECOMMENDED: ",
            Some(Mark::Warned(_)) => "warned: ",
            Some(Mark::Tolerated) => "tolerated: ",
        };
        let name = format!("{}: {mark}{}", self.client, self.way);
        let pool = match (self.setup.warm, self.setup.cuts) {
            (_, true) => "cuts",
            (true, _) => "warm",
            (false, _) => "cold",
        };
        let failed = self.sum(|round| round.request_errors + round.job_errors + round.hung);
        write!(
            f,
            "| {name:<68} | {:<12} | {:>4} | {pool:<8} | {:>9} | {:>6} | {:>9} | {failed:>6} | {:>9} | {:>6} | {:>6.1} | {:>6.0} | {:>6.0} | {:>6.0} |",
            self.side,
            self.setup.jobs,
            self.sum(|round| round.requests),
            self.stalls(),
            self.sum(|round| round.request_panics),
            self.sum(|round| round.jobs),
            self.sum(|round| round.job_panics),
            self.latency(0.5),
            self.latency(0.99),
            self.latency(1.0),
            self.resume(1.0),
        )?;
        if let Some(said) = self.rounds.iter().find_map(|round| round.said.as_ref()) {
            let said: String = said.chars().take(90).collect();
            write!(f, " {}", said.replace('\n', " "))?;
        }
        Ok(())
    }
}
