//! How late does the I/O lane answer while the CPU lane is saturated?
//!
//! A TCP echo server is a task of the I/O lane: a Tokio runtime with as many workers as the machine
//! has cores. A client on a plain thread sends it 64 bytes every 2 ms, on a schedule fixed before.
//! Meanwhile jobs of fixed work (5 ms on an idle core) run, always the same number in flight. What
//! the contenders differ in is where these jobs run:
//!
//! - `idle`: nowhere,
//! - `same_runtime`: as tasks of the I/O runtime,
//! - `spawn_blocking_4`, `_32`: in its blocking pool, 4 or 32 jobs for each core in flight,
//! - `second_runtime`, `rayon`: on as many threads of its own as there are cores;
//!   `second_runtime_nice_16`: at the nice value of a lane,
//! - `twolane_unweighted`, `twolane_plain`, `twolane`: twolane without its weights, without its
//!   ticks ([`giveway::tick_each`]), and with its defaults; `twolane_short_jobs`,
//!   `twolane_high_jobs`: with eight short jobs for each, at `Normal` or `High`.
//!
//! Each runs in slices, in a process that has no thread left of the one before.
//! Latencies are kept from the actual send and from the intended one (`tail/client.rs` says why).
//! Ratios are of those from the send (`_intended`: from the intended one); `_pooled` compares all
//! slices in one, in which one bad second counts for what it is.
//!
//! # What it does not measure
//!
//! A server that computes or has many connections. A loaded network. Jobs that are memory-bound,
//! that lock, or that do I/O. The cost of handing a job over (`offload`). A machine that is busy with
//! something else: see `others`. The client and the feeder of the jobs share the cores with all.
//!
//! ```text
//! cargo bench --bench io_tail                # 90 seconds; --full: a quarter of an hour
//! cargo bench --bench io_tail -- 'idle|twolane' --rounds 6 --nice 10
//! ```

use std::cell::LazyCell;
use std::process::ExitCode;
use std::time::Duration;

use tokio::runtime::Handle;
use twolane::{Builder, Niceness, Priority};
use twolane_benches::tail::client::{COLUMNS, ratios, slice_of};
use twolane_benches::tail::lanes::{Lane, tick};
use twolane_benches::tail::work::Work;
use twolane_benches::tail::{JOB, REST};
use twolane_benches::{Bench, Contender, Contest, cores};

/// Jobs in flight for each core: enough that no thread waits for the feeder, and the
/// many that a service under load has in its blocking pool.
const FEW: usize = 4;
const MANY: usize = 32;

const CONTENDERS: [&str; 12] = [
    "idle",
    "same_runtime",
    "spawn_blocking_4",
    "spawn_blocking_32",
    "second_runtime",
    "second_runtime_nice_16",
    "rayon",
    "twolane_unweighted",
    "twolane_plain",
    "twolane",
    "twolane_short_jobs",
    "twolane_high_jobs",
];

/// Where the jobs of a contender run, if it has any.
fn open(name: &str, io: &Handle, nice: Option<u8>) -> Option<Lane> {
    let few = FEW * cores();
    // The defaults, but for a weight that was asked for.
    let weighted = |lane: Builder| match nice {
        // High may not be weaker; nothing runs there.
        Some(nice) => lane.niceness(
            Niceness::off()
                .of(Priority::Normal, nice)
                .of(Priority::Low, nice),
        ),
        None => lane,
    };
    let twolane = |set: &dyn Fn(Builder) -> Builder| Lane::twolane(io, few, set);
    tick(name.starts_with("twolane") && name != "twolane_plain");
    Some(match name {
        "same_runtime" => Lane::same_runtime(io, few),
        "spawn_blocking_4" => Lane::spawn_blocking(io, few),
        "spawn_blocking_32" => Lane::spawn_blocking(io, MANY * cores()),
        "second_runtime" => Lane::second_runtime(cores(), few, 0),
        "second_runtime_nice_16" => Lane::second_runtime(cores(), few, 16),
        "rayon" => Lane::rayon(cores(), few),
        "twolane_unweighted" => twolane(&|lane| lane.niceness(Niceness::off())),
        "twolane_plain" | "twolane" => twolane(&weighted),
        "twolane_short_jobs" => Lane::twolane_and_short_jobs(io, few, Priority::Normal),
        "twolane_high_jobs" => Lane::twolane_and_short_jobs(io, few, Priority::High),
        _ => return None,
    })
}

fn main() -> ExitCode {
    let bench = Bench::new("io_tail");
    let measured = Duration::from_millis(bench.pick([100, 1_000, 3_000, 10_000]));
    let work = LazyCell::new(|| Work::calibrated(JOB));
    let (nice, work) = (bench.args.nice, &work);
    let contenders = CONTENDERS.map(|name| {
        Contender::new(name, move || {
            Ok(slice_of(|io| open(name, io, nice), **work, measured))
        })
    });
    let contest = Contest::new(&bench, contenders, [1, 2, 2, 6], measured + REST).ending_threads();
    contest.report(|report| {
        let title = format!("latency, ms; slices of {measured:?}, jobs of {JOB:?}");
        report.table(&title, "", &COLUMNS);
        for p in ["p999", "p99"] {
            let name = format!("{p}_twolane_over_idle");
            ratios(report, &name, p, "twolane", "idle");
        }
        let name = "p999_second_runtime_over_twolane";
        ratios(report, name, "p999", "second_runtime", "twolane");
        let name = "cpu_throughput_twolane_over_second_runtime";
        report.ratio(name, "jobs_per_s", "twolane", "second_runtime");
        for jobs in ["short_jobs", "high_jobs"] {
            let name = format!("p999_{jobs}_over_without");
            ratios(report, &name, "p999", &format!("twolane_{jobs}"), "twolane");
        }
    })
}
