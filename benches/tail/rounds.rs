//! How long a bench runs, and its slices, contender by contender.

use std::time::Duration;

use super::findings::{Findings, Slice, chosen};
use super::{WARM_UP, progress};
use crate::support::in_turn;
use crate::support::watchdog::Watchdog;

#[derive(clap::Args)]
pub struct Rounds {
    /// Two slices of a second each
    #[arg(long)]
    quick: bool,
    /// Only these contenders: a name, or what several names begin with
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Measured seconds of a slice, after its warm-up
    #[arg(long)]
    seconds_per_slice: Option<f64>,
    /// Slices of each contender
    #[arg(long)]
    slices: Option<usize>,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
    /// The same as `--quick`
    #[arg(long, hide = true)]
    test: bool,
}

impl Rounds {
    fn is_quick(&self) -> bool {
        self.quick || self.test
    }

    pub fn slices(&self) -> usize {
        self.slices.unwrap_or(if self.is_quick() { 2 } else { 6 })
    }

    /// The time of a slice that counts.
    pub fn measured(&self) -> Duration {
        let seconds = if self.is_quick() { 1.0 } else { 10.0 };
        Duration::from_secs_f64(self.seconds_per_slice.unwrap_or(seconds))
    }

    /// Runs a slice of each contender in each round; an error is why it can't
    /// be run.
    pub fn run<C: Copy + Ord, S: Slice>(
        &self,
        all: &[C],
        name: fn(C) -> &'static str,
        mut slice: impl FnMut(C) -> Result<S, String>,
    ) -> Findings<C, S> {
        let contenders = chosen(all, name, &self.only);
        let slices = self.slices();
        let watchdog = Watchdog::start();
        // Beyond the slice: what the client waits for a last answer, and the
        // pools for their threads.
        let bound = WARM_UP + self.measured() + Duration::from_secs(60);
        let progress = progress(contenders.len() * slices);
        let mut findings = Findings::new(&contenders);
        for round in 0..slices {
            for turn in in_turn(contenders.len(), round) {
                let contender = contenders[turn];
                let what = format!("{}, slice {} of {slices}", name(contender), round + 1);
                watchdog.allow(what.clone(), bound);
                progress.set_message(what);
                match slice(contender) {
                    Ok(slice) => findings.add(contender, slice),
                    Err(reason) => findings.skip(contender, reason),
                }
                progress.inc(1);
            }
        }
        progress.finish_and_clear();
        findings
    }
}
