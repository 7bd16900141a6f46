//! Contenders in alternation, round by round.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::args::{Bench, Form};
use crate::findings::{Findings, OTHERS, Sample};
use crate::others::Others;
use crate::report::Report;
use crate::threads::Threads;
use crate::watchdog::Watchdog;

/// One of those that a bench compares.
pub struct Contender<'a> {
    pub name: String,
    pub turn: Turn<'a>,
}

pub type BoxError = Box<dyn Error + Send + Sync>;

/// What a contender does in each round. After an error it has no other turn, and the bench fails,
/// unless the error is [`not_here`].
pub type Turn<'a> = Box<dyn FnMut() -> Result<Sample, BoxError> + 'a>;

/// The error of a contender that can't run on this machine, which lacks `what`: of no consequence,
/// unless `TWOLANE_MUST_RUN`, a list with commas, says that the machine has it.
pub fn not_here(what: &'static str, why: impl Into<String>) -> BoxError {
    let why = why.into();
    NotHere { what, why }.into()
}

#[derive(Debug)]
struct NotHere {
    what: &'static str,
    why: String,
}

impl NotHere {
    fn must_run(&self) -> bool {
        let listed = std::env::var("TWOLANE_MUST_RUN").unwrap_or_default();
        listed.split(',').any(|listed| listed.trim() == self.what)
    }
}

impl fmt::Display for NotHere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no {}: {}", self.what, self.why)
    }
}

impl Error for NotHere {}

impl<'a> Contender<'a> {
    pub fn new(
        name: impl Into<String>,
        turn: impl FnMut() -> Result<Sample, BoxError> + 'a,
    ) -> Self {
        Self {
            name: name.into(),
            turn: Box::new(turn),
        }
    }
}

pub struct Contest<'a> {
    bench: &'a Bench,
    contenders: Vec<Contender<'a>>,
    rounds: usize,
    warm_up: bool,
    ends_threads: bool,
    bound: Duration,
}

impl<'a> Contest<'a> {
    /// Without a warm-up, of contenders that keep their threads. `rounds`: of each form. A turn of
    /// more than `bound` is taken to hang: a generous one, since a busy machine is slow.
    pub fn new(
        bench: &'a Bench,
        contenders: impl IntoIterator<Item = Contender<'a>>,
        rounds: [usize; 4],
        bound: Duration,
    ) -> Self {
        Self {
            bench,
            contenders: contenders.into_iter().collect(),
            rounds: bench.rounds(rounds),
            warm_up: false,
            ends_threads: false,
            bound,
        }
    }

    /// A round whose figures are not kept goes before, but in a test.
    pub fn warming_up(self) -> Self {
        let warm_up = self.bench.form() != Form::Test;
        Self { warm_up, ..self }
    }

    /// Each turn ends its threads, and the next one waits until they are gone.
    pub fn ending_threads(self) -> Self {
        let ends_threads = true;
        Self {
            ends_threads,
            ..self
        }
    }

    /// Runs those that the command line asks for, and reports what they measure: `show` prints
    /// tables and puts ratios. Fails if a contender did.
    pub fn report(mut self, show: impl FnOnce(&Report)) -> ExitCode {
        let bench = self.bench;
        self.contenders
            .retain(|contender| bench.wants(&contender.name));
        if self.contenders.is_empty() {
            return ExitCode::SUCCESS;
        }
        let report = Report::new(bench, self.alternate());
        show(&report);
        report.finish()
    }

    /// Each round begins with another contender, so that what the machine does
    /// besides falls on all alike.
    fn alternate(self) -> Findings {
        let (bench, mut contenders, rounds) = (self.bench.name, self.contenders, self.rounds);
        println!(
            "\n{bench}: {} contenders in alternation, rounds: {rounds} ({} run)",
            contenders.len(),
            format!("{:?}", self.bench.form()).to_lowercase(),
        );
        let style = "{prefix} {bar:30} {pos}/{len} {elapsed} (done in {eta}) {wide_msg}";
        // Hidden where stderr is no terminal. Drawn between turns alone: a bar
        // that ticks has a thread of its own.
        let progress = ProgressBar::new((rounds * contenders.len()) as u64)
            .with_prefix(bench)
            .with_style(ProgressStyle::with_template(style).unwrap());
        let watchdog = Watchdog::start();
        let names = contenders.iter().map(|contender| contender.name.clone());
        let mut findings = Findings::new(names.collect());
        for round in 0..rounds + usize::from(self.warm_up) {
            let counts = round > 0 || !self.warm_up;
            for turn in 0..contenders.len() {
                let nth = (turn + round) % contenders.len();
                let Contender { name, turn } = &mut contenders[nth];
                if findings.is_out(name) {
                    progress.inc(u64::from(counts));
                    continue;
                }
                progress.set_message(name.clone());
                watchdog.allow(format!("{bench}: {name}"), self.bound);
                let threads = self.ends_threads.then(Threads::now);
                let others = Others::since_now();
                match turn() {
                    Ok(mut sample) => {
                        sample.put(OTHERS, "of all cores", others.fraction());
                        if counts {
                            findings.add(name, sample);
                        }
                    }
                    Err(error) => {
                        let not_here = error.downcast_ref::<NotHere>();
                        let is_failure = not_here.is_none_or(NotHere::must_run);
                        findings.take_out(name, error.to_string(), is_failure);
                    }
                }
                if let Some(threads) = threads {
                    threads.wait_for_others_to_end();
                }
                watchdog.rest();
                progress.inc(u64::from(counts));
            }
            if progress.is_hidden() && rounds > 1 && counts {
                println!("{bench}: a round is done ({:.0?})", progress.elapsed());
            }
        }
        progress.finish_and_clear();
        findings
    }
}
