//! Benches whose answer is a mean.
//!
//! Each contender says how long so many iterations of a case take. criterion
//! measures that first, contender after contender, with its filters, baselines
//! and reports. What a machine does besides then falls on some and not on
//! others, so criterion's figures tell how a contender is doing against its own
//! baseline, and no ratio is taken from them: for the ratios the same code runs
//! again, in alternation.

use std::process::{Command, exit};
use std::time::Duration;

use criterion::{Criterion, Throughput};

use crate::args::{Bench, Form};
use crate::contest::{Contender, Contest};
use crate::findings::{Findings, Sample};
use crate::watchdog::Watchdog;

/// A contender that has cases.
pub struct Timed<'a> {
    pub name: String,
    pub cases: Vec<Case>,
    pub time: Time<'a>,
    /// Cases that are no mean, or that another process measures: in the rounds
    /// alone.
    pub others: Vec<&'static str>,
    pub other: Other<'a>,
}

/// How long so many iterations take.
type Time<'a> = Box<dyn FnMut(&Case, u64) -> Duration + 'a>;
/// Measures one of the other cases. An error says why the contender can't run here.
type Other<'a> = Box<dyn FnMut(&'static str, &mut Sample) -> Result<(), String> + 'a>;

/// Something whose mean is of interest.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub name: &'static str,
    /// How often, in a turn of the rounds: some milliseconds' worth.
    pub iterations: u64,
    /// What one iteration moves.
    pub bytes: Option<u64>,
}

impl Case {
    pub fn new(name: &'static str, iterations: u64) -> Self {
        let bytes = None;
        Self {
            name,
            iterations,
            bytes,
        }
    }
}

const BOUND: Duration = Duration::from_secs(120);

impl Bench {
    /// The means of all cases, by criterion and then in `rounds`. Each case is a
    /// metric of the findings, in ns. The filter is of `BENCH/CASE/CONTENDER`.
    /// `None`: the command line asks for none of it.
    pub fn means(
        &self,
        mut contenders: Vec<Timed<'_>>,
        rounds: usize,
        ends_threads: bool,
    ) -> Option<Findings> {
        let wants = |case: &str, contender: &str| self.wants(&format!("{case}/{contender}"));
        for Timed {
            name,
            cases,
            others,
            ..
        } in &mut contenders
        {
            cases.retain(|case| wants(case.name, name));
            others.retain(|case| wants(case, name));
        }
        contenders.retain(|one| !one.cases.is_empty() || !one.others.is_empty());
        self.criterion(&mut contenders);
        let args = &self.args;
        let rounds_too = !args.list && args.load_baseline.is_none() && args.profile_time.is_none();
        if contenders.is_empty() || !rounds_too {
            return None;
        }
        let once = self.form() == Form::Test;
        let contenders = contenders.into_iter().map(|contender| {
            let Timed {
                name,
                cases,
                mut time,
                others,
                mut other,
            } = contender;
            let turn = move || {
                let mut sample = Sample::default();
                for case in &cases {
                    let most = if once { 20 } else { u64::MAX };
                    let iterations = case.iterations.min(most);
                    let took = time(case, iterations);
                    sample.put(case.name, "ns", took.as_nanos() as f64 / iterations as f64);
                }
                for case in &others {
                    other(case, &mut sample)?;
                }
                Ok(sample)
            };
            Contender::new(name, turn)
        });
        Some(self.alternate(Contest {
            contenders: contenders.collect(),
            rounds,
            warm_up: !once,
            ends_threads,
            bound: BOUND,
        }))
    }

    fn criterion(&self, contenders: &mut [Timed<'_>]) {
        if contenders.iter().all(|one| one.cases.is_empty()) {
            return;
        }
        self.leave_own_switches();
        let seconds = Duration::from_secs_f64;
        let (warm_up, measured) = self.pick([(0.1, 0.2), (0.1, 0.2), (0.2, 0.5), (1.0, 3.0)]);
        let mut criterion = Criterion::default()
            .warm_up_time(seconds(warm_up))
            .measurement_time(seconds(measured))
            .sample_size(self.pick([10, 10, 20, 50]))
            .nresamples(self.pick([2_000, 2_000, 10_000, 100_000]));
        if matches!(self.form(), Form::Test | Form::Quick) {
            criterion = criterion.without_plots();
        }
        let mut criterion = criterion.configure_from_args();
        let watchdog = Watchdog::start();
        // A group for each case, so that a report compares contenders.
        let mut names: Vec<&str> = Vec::new();
        for case in contenders.iter().flat_map(|contender| &contender.cases) {
            if !names.contains(&case.name) {
                names.push(case.name);
            }
        }
        for name in names {
            let mut group = criterion.benchmark_group(format!("{}/{name}", self.name));
            for Timed {
                name: contender,
                cases,
                time,
                ..
            } in &mut *contenders
            {
                let Some(case) = cases.iter().find(|case| case.name == name) else {
                    continue;
                };
                if let Some(bytes) = case.bytes {
                    group.throughput(Throughput::Bytes(bytes));
                }
                group.bench_function(contender.as_str(), |bencher| {
                    bencher.iter_custom(|iterations| {
                        watchdog.allow(format!("{name}/{contender}"), BOUND);
                        let took = time(case, iterations);
                        watchdog.rest();
                        took
                    });
                });
            }
            group.finish();
        }
        criterion.final_summary();
    }

    /// criterion reads the command line by itself, and ends at what it doesn't
    /// know. So our own switches go into the environment, and the process starts
    /// again without them.
    fn leave_own_switches(&self) {
        let mut args = std::env::args().skip(1);
        let mut again = Command::new(std::env::current_exe().unwrap());
        let mut has_own = false;
        while let Some(arg) = args.next() {
            match arg.split('=').next().unwrap() {
                "--full" => {
                    again.env("TWOLANE_BENCH_FULL", "true");
                }
                own @ ("--rounds" | "--nice") => {
                    if arg == own {
                        args.next();
                    }
                    if let Some(rounds) = self.args.rounds {
                        again.env("TWOLANE_BENCH_ROUNDS", rounds.to_string());
                    }
                }
                _ => {
                    again.arg(arg);
                    continue;
                }
            }
            has_own = true;
        }
        if has_own {
            exit(again.status().unwrap().code().unwrap_or(1));
        }
    }
}
