//! The command line. `cargo bench -- ARGS` hands the same to every bench.

use clap::Parser;
use regex::Regex;

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Everything once: does it run at all?
    Test,
    /// At most a minute for each bench; the figures mean little.
    Quick,
    /// The nine benches of a plain `cargo bench` take ten minutes together.
    Usual,
    /// What the figures of the docs come from.
    Full,
}

#[derive(Parser)]
pub struct Args {
    /// Run only those whose name, BENCH/CONTENDER, matches this regular expression
    pub filter: Option<Regex>,
    /// A short run, at most a minute for each bench
    #[arg(long)]
    quick: bool,
    /// The long form, which the figures of the docs come from
    #[arg(long)]
    pub full: bool,
    /// Rounds of each contender
    #[arg(long)]
    pub rounds: Option<usize>,
    /// io_tail: the nice value of twolane's threads
    #[arg(long)]
    pub nice: Option<u8>,
    /// Run everything once
    #[arg(long)]
    test: bool,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// One bench, as the command line wants it.
pub struct Bench {
    pub name: &'static str,
    pub args: Args,
}

impl Bench {
    pub fn new(name: &'static str) -> Self {
        let args = Args::parse();
        Self { name, args }
    }

    pub fn form(&self) -> Form {
        match &self.args {
            // Without `--bench` it is `cargo test --benches` that runs this.
            args if args.test || !args.bench => Form::Test,
            args if args.quick => Form::Quick,
            args if args.full => Form::Full,
            _ => Form::Usual,
        }
    }

    /// The value for this run, of those for a test, a quick, a usual and a full one.
    pub fn pick<T>(&self, [test, quick, usual, full]: [T; 4]) -> T {
        match self.form() {
            Form::Test => test,
            Form::Quick => quick,
            Form::Usual => usual,
            Form::Full => full,
        }
    }

    /// How many rounds, unless the command line says so.
    pub(crate) fn rounds(&self, forms: [usize; 4]) -> usize {
        self.args.rounds.unwrap_or_else(|| self.pick(forms)).max(1)
    }

    /// Whether the filter lets `BENCH/CONTENDER` pass.
    pub fn wants(&self, contender: &str) -> bool {
        let filter = self.args.filter.as_ref();
        filter.is_none_or(|filter| filter.is_match(&format!("{}/{contender}", self.name)))
    }
}
