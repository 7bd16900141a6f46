//! How late does the I/O lane answer while the CPU lane is saturated?
//!
//! A TCP echo server is a task of the I/O lane: a Tokio runtime with as many
//! workers as the machine has cores. A client on a plain thread sends it 64
//! bytes every 2 ms, on a schedule fixed before. Meanwhile jobs of fixed work
//! (5 ms on an idle core) run, always the same number in flight. What the
//! contenders differ in is where these jobs run:
//!
//! - `idle`: nowhere; `awake`: nowhere, and a process at nice 19 keeps each
//!   core from going to sleep, which is what an idle machine's latency is made
//!   of,
//! - `same_runtime`: as tasks of the I/O runtime; `same_runtime_yield`: with a
//!   `yield_now` after each millisecond,
//! - `spawn_blocking_4`, `_32`: in its blocking pool, 4 or 32 jobs for each
//!   core in flight,
//! - `second_runtime`, `rayon`: on as many threads of its own as there are
//!   cores; `second_runtime_minus_one`: one fewer, as is often advised,
//! - `twolane_unweighted`, `twolane_rayon`, `twolane_runtime`: twolane without
//!   its weights, and with its defaults on either backend.
//!
//! Each runs in slices, in alternation, in a process that has no thread left of
//! the one before. Latencies are kept twice: from the actual send, and from the
//! intended one (`client.rs` says why). Jobs a second tell what the load had of
//! it.
//!
//! # What it does not measure
//!
//! A server that computes or has many connections. A loaded network. Jobs that
//! are memory-bound, that lock, or that do I/O themselves. The cost of handing a
//! job over (see `hop`). A machine that is busy with something else: the column
//! `others` says how much of it others had in that time, and figures beside
//! more than a few per cent are theirs. The client and the feeder of the jobs
//! share the cores with what they measure; they are the same for all.
//!
//! # How to run it
//!
//! ```text
//! cargo bench --bench io_tail                      # 12 contenders, a quarter of an hour
//! cargo bench --bench io_tail -- --quick           # 40 seconds; p99.9 is the second worst of 1,000
//! cargo bench --bench io_tail -- --only idle,twolane --slices 2 --nice 10
//! ```
//!
//! It writes `target/twolane/io_tail.json` and `io_tail.svg`.

// In a program `pub` is no promise to anybody.
#![allow(unreachable_pub)]

#[path = "../support/mod.rs"]
mod support;
#[path = "../tail/mod.rs"]
mod tail;
#[path = "../../examples/support/words.rs"]
mod words;

mod contender;
mod picture;
mod ratios;
mod slice;
mod spinners;
mod table;

use clap::Parser;

use contender::Contender;
use slice::{Settings, Slice};
use support::{Report, cores};
use tail::JOB;
use tail::figures::print_and_report;
use tail::findings;
use tail::rounds::Rounds;
use tail::work::Work;

type Findings = findings::Findings<Contender, Slice>;

#[derive(Parser)]
#[command(about = "How late does the I/O lane answer while the CPU lane is saturated?")]
struct Args {
    #[command(flatten)]
    rounds: Rounds,
    /// The nice value of the `twolane_rayon` and `twolane_runtime` threads
    #[arg(long)]
    nice: Option<u8>,
    /// Be one of the processes that keep a core awake
    #[arg(long, hide = true)]
    spin: bool,
}

fn main() {
    let args = Args::parse();
    if args.spin {
        spinners::spin();
    }
    let (slices, measured) = (args.rounds.slices(), args.rounds.measured());
    let work = Work::calibrated(JOB);
    let settings = Settings {
        cores: cores(),
        work,
        measured,
        nice: args.nice,
    };
    println!(
        "{} cores; a job is {} steps, {:.2} ms alone; {slices} slices of {measured:?} each",
        settings.cores,
        work.steps,
        work.best_of(20).as_secs_f64() * 1e3,
    );

    let run = |contender| slice::run(contender, &settings);
    let findings = args.rounds.run(&Contender::ALL, Contender::name, run);

    table::print(&findings, settings.cores);

    let mut report = Report::new("io_tail");
    let alone = work.best_of(20).as_secs_f64() * 1e3;
    report.row("job", "alone", "ms", alone, 20);
    table::report(&findings, &mut report);
    print_and_report(&ratios::all(&findings), &mut report);
    let file = report.write().join("io_tail.svg");
    match picture::draw(&findings, settings.cores, &file) {
        Ok(()) => println!("drawn in {}", file.display()),
        Err(error) => println!("not drawn: {error}"),
    }
}
