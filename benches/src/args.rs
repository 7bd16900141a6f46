//! The command line.
//!
//! `cargo bench -- ARGS` hands the same arguments to every bench, those that
//! criterion runs and those that it does not. So each of them takes criterion's
//! and libtest's arguments too, and ignores what means nothing to it.

use clap::{Arg, ArgAction, CommandFactory, FromArgMatches, Parser};
use regex::Regex;

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Everything once: does it run at all?
    Test,
    /// At most a minute for each bench; the figures mean little.
    Quick,
    /// All benches together take a quarter of an hour.
    Usual,
    /// What the figures of the docs come from.
    Full,
}

#[derive(Parser)]
pub struct Args {
    /// Run only those whose name, BENCH/CASE/CONTENDER, matches this regular expression
    filter: Option<Regex>,
    /// A short run, at most a minute for each bench
    #[arg(long)]
    quick: bool,
    /// The long form, which the figures of the docs come from
    #[arg(long, env = "TWOLANE_BENCH_FULL")]
    pub full: bool,
    /// Rounds of each contender
    #[arg(long, env = "TWOLANE_BENCH_ROUNDS")]
    pub rounds: Option<usize>,
    /// io_tail: the nice value of twolane's threads
    #[arg(long)]
    pub nice: Option<u8>,
    /// Print the names and end
    #[arg(long)]
    pub list: bool,
    /// Run everything once
    #[arg(long)]
    test: bool,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
    /// criterion's: reload what an earlier run measured
    #[arg(long, hide = true)]
    pub load_baseline: Option<String>,
    /// criterion's: run under a profiler
    #[arg(long, hide = true)]
    pub profile_time: Option<f64>,
}

/// Flags of criterion and libtest that mean nothing here.
const FLAGS: &str = "verbose quiet noplot discard-baseline ignored include-ignored exact nocapture \
                     show-output";
/// Options of theirs, which take a value.
const OPTIONS: &str = "color save-baseline baseline baseline-lenient format sample-size warm-up-time \
                       measurement-time nresamples noise-threshold confidence-level \
                       significance-level plotting-backend output-format test-threads skip logfile";
/// Short forms of some.
const SHORT: [(&str, char); 5] = [
    ("verbose", 'v'),
    ("noplot", 'n'),
    ("color", 'c'),
    ("save-baseline", 's'),
    ("baseline", 'b'),
];

impl Args {
    fn parse_leniently() -> Self {
        let ignored = |name: &'static str, action| {
            let short = SHORT.iter().find(|(long, _)| *long == name);
            Arg::new(name)
                .long(name)
                .short(short.map(|(_, short)| *short))
                .action(action)
                .hide(true)
        };
        let flags = FLAGS
            .split_whitespace()
            .map(|f| ignored(f, ArgAction::SetTrue));
        let options = OPTIONS
            .split_whitespace()
            .map(|o| ignored(o, ArgAction::Append));
        let matches = Self::command().args(flags).args(options).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// One bench, as the command line wants it.
pub struct Bench {
    pub name: &'static str,
    pub args: Args,
}

impl Bench {
    pub fn new(name: &'static str) -> Self {
        let args = Args::parse_leniently();
        Self { name, args }
    }

    pub fn form(&self) -> Form {
        match &self.args {
            // Without `--bench` it is `cargo test --benches` that runs this, as
            // criterion has it.
            args if args.test || !args.bench => Form::Test,
            args if args.quick => Form::Quick,
            args if args.full => Form::Full,
            _ => Form::Usual,
        }
    }

    /// The value for this run, of those for a test, a quick, a usual and a full
    /// one.
    pub fn pick<T>(&self, [test, quick, usual, full]: [T; 4]) -> T {
        match self.form() {
            Form::Test => test,
            Form::Quick => quick,
            Form::Usual => usual,
            Form::Full => full,
        }
    }

    /// How many rounds, unless the command line says so.
    pub fn rounds(&self, forms: [usize; 4]) -> usize {
        self.args.rounds.unwrap_or_else(|| self.pick(forms)).max(1)
    }

    /// Whether the filter lets `BENCH/CONTENDER` pass.
    pub fn wants(&self, contender: &str) -> bool {
        let filter = self.args.filter.as_ref();
        filter.is_none_or(|filter| filter.is_match(&format!("{}/{contender}", self.name)))
    }
}
