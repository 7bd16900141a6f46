//! Every contender in turn, round after round.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::contender::Contender;
use super::findings::Findings;
use super::lsm::Error;
use super::slice::{Bench, Load};
use crate::watchdog::Watchdog;

/// For what comes besides the measured time of a slice: its backlog, and
/// reading all of it back.
const REST: Duration = Duration::from_secs(120);

/// Slices of `measured` for each of `turns`, `rounds` times; each round begins
/// with another of them, so that what the machine does besides falls on all
/// alike.
pub fn run(
    bench: &Bench,
    turns: &[(Contender, Load)],
    rounds: usize,
    measured: Duration,
) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let watchdog = Watchdog::start();
    // Hidden where stderr is no terminal.
    let progress = ProgressBar::new((rounds * turns.len()) as u64).with_style(
        ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {wide_msg}")?,
    );
    for round in 0..rounds {
        for turn in 0..turns.len() {
            let (contender, load) = turns[(turn + round) % turns.len()];
            let what = format!("{}, {load:?}, round {}", contender.title(), round + 1);
            watchdog.allow(what.clone(), measured + REST);
            progress.set_message(what);
            findings.add(contender, load, bench.slice(contender, load, measured)?);
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    Ok(findings)
}
