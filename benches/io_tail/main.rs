//! How late does the I/O lane answer while the CPU lane is saturated?
//!
//! A TCP echo server is a task of the I/O lane: a Tokio runtime with as many workers
//! as the machine has cores. A client on a plain thread sends it 64 bytes every 2 ms,
//! on a schedule fixed before. Meanwhile jobs of fixed work (5 ms on an idle core)
//! run, always the same number in flight. What the contenders differ in is where
//! these jobs run:
//!
//! - `idle`: nowhere; `awake`: nowhere, and a process at nice 19 keeps each core from
//!   going to sleep, which is what an idle machine's latency is made of,
//! - `same_runtime`: as tasks of the I/O runtime; `same_runtime_yield`: with a
//!   `yield_now` after each millisecond,
//! - `spawn_blocking_4`, `_32`: in its blocking pool, 4 or 32 jobs for each core in
//!   flight,
//! - `second_runtime`, `rayon`: on as many threads of its own as there are cores;
//!   `second_runtime_nice_16`: at the nice value of a lane; `second_runtime_minus_one`: one
//!   fewer, as is often advised,
//! - `twolane_unweighted`, `twolane_plain`, `twolane_rayon`, `twolane_runtime`: twolane without
//!   its weights, without its interrupts (which only kernels with lazy preemption have), and with
//!   its defaults on either backend.
//!
//! Each runs in slices, in a process that has no thread left of the one before.
//! Latencies are kept twice: from the actual send, and from the intended one
//! (`tail/client.rs` says why). Jobs a second tell what the load had of it. Ratios are
//! of latencies from the send (`_intended`: from the intended one); `_pooled` compares
//! all slices in one, in which one bad second counts for what it is.
//!
//! # What it does not measure
//!
//! A server that computes or has many connections. A loaded network. Jobs that are
//! memory-bound, that lock, or that do I/O themselves. The cost of handing a job over
//! (see `offload`). A machine that is busy with something else: the column `others`
//! says how much of it others had, and figures beside more than a few per cent are
//! theirs. The client and the feeder of the jobs share the cores with what they
//! measure; they are the same for all.
//!
//! ```text
//! cargo bench --bench io_tail                # 90 seconds; --full: a quarter of an hour
//! cargo bench --bench io_tail -- 'idle|twolane' --rounds 6 --nice 10
//! ```
//!
//! It writes `target/twolane/io_tail.svg` too.

mod picture;
mod slice;
mod spinners;
#[path = "../../examples/support/words.rs"]
mod words;

use std::cell::LazyCell;
use std::time::Duration;

use tokio::runtime::Handle;
use twolane::{Backend, Builder, CpuRuntime, Priority};
use twolane_benches::tail::lanes::Lane;
use twolane_benches::tail::work::Work;
use twolane_benches::tail::{JOB, REST};
use twolane_benches::{Bench, Column, Contender, Contest, Ratio, Report, child, cores, folder};

/// Jobs in flight for each core: enough that no thread waits for the feeder, and the
/// many that a service under load has in its blocking pool.
const FEW: usize = 4;
const MANY: usize = 32;

/// A piece between two yields takes a millisecond.
const PIECES: u64 = 5;

/// A contender: its name, and where its jobs run, if it has any.
type Open = fn(&Handle, Option<u8>) -> Option<Lane>;
const CONTENDERS: [(&str, Open); 14] = [
    ("idle", |_, _| None),
    ("awake", |_, _| None),
    ("same_runtime", |io, _| Some(Lane::same_runtime(io, few()))),
    ("same_runtime_yield", |io, _| {
        Some(Lane::same_runtime_yielding(io, few(), PIECES))
    }),
    ("spawn_blocking_4", |io, _| {
        Some(Lane::spawn_blocking(io, few()))
    }),
    ("spawn_blocking_32", |io, _| {
        Some(Lane::spawn_blocking(io, MANY * cores()))
    }),
    ("second_runtime", |_, _| {
        Some(Lane::second_runtime(cores(), few(), 0))
    }),
    ("second_runtime_nice_16", |_, _| {
        Some(Lane::second_runtime(cores(), few(), 16))
    }),
    ("rayon", |_, _| Some(Lane::rayon(cores(), few()))),
    ("second_runtime_minus_one", |_, _| {
        Some(Lane::second_runtime(
            cores().saturating_sub(1).max(1),
            few(),
            0,
        ))
    }),
    ("twolane_unweighted", |io, _| {
        Some(Lane::twolane(
            io,
            CpuRuntime::builder().without_nice(),
            few(),
        ))
    }),
    ("twolane_plain", |io, nice| {
        let plain = weighted(Backend::Rayon, nice).interrupt_cores_every(Duration::ZERO);
        Some(Lane::twolane(io, plain, few()))
    }),
    ("twolane_rayon", |io, nice| {
        Some(Lane::twolane(io, weighted(Backend::Rayon, nice), few()))
    }),
    ("twolane_runtime", |io, nice| {
        Some(Lane::twolane(io, weighted(Backend::Runtime, nice), few()))
    }),
];

fn few() -> usize {
    FEW * cores()
}

/// The defaults, but for a weight that was asked for.
fn weighted(backend: Backend, nice: Option<u8>) -> Builder {
    let builder = CpuRuntime::builder().backend(backend);
    match nice {
        // High may not be weaker; nothing runs there.
        Some(nice) => builder.nice(Priority::High, 0).nice(Priority::Normal, nice),
        None => builder,
    }
}

fn main() {
    if let Some(spinners::Role::Spin) = child::role() {
        spinners::spin();
    }
    let bench = Bench::new("io_tail");
    let measured = Duration::from_millis(bench.pick([100, 1_000, 3_000, 10_000]));
    let work = LazyCell::new(|| Work::calibrated(JOB));
    let (nice, work) = (bench.args.nice, &work);
    let contenders = CONTENDERS.map(|(name, open)| {
        Contender::new(name, move || {
            slice::run(name, |io| open(io, nice), **work, measured)
        })
    });
    let found = bench.run(Contest {
        contenders: contenders.into(),
        rounds: bench.rounds([1, 2, 2, 6]),
        warm_up: false,
        ends_threads: true,
        bound: measured + REST,
    });
    let Some(found) = found else { return };

    let mut report = Report::new(bench.name, &found);
    report.table(
        &format!("latency, ms; slices of {measured:?}, jobs of {JOB:?}"),
        "",
        &[
            Column::sum("requests", "requests"),
            Column::sum("missed", "missed"),
            Column::pooled("p50", "from_send", 0.5),
            Column::pooled("p99", "from_send", 0.99),
            Column::pooled("p99.9", "from_send", 0.999),
            Column::spread("p99.9 of a slice", "from_send_p999"),
            Column::pooled("max", "from_send", 1.0),
            Column::pooled("p99.9, intended", "from_intended", 0.999),
            Column::median("jobs/s", "jobs_per_s"),
            Column::median("others", "others"),
        ],
    );
    for (twolane, suffix) in [("twolane_rayon", ""), ("twolane_runtime", "_runtime")] {
        for (name, q, over, under) in [
            ("p999_twolane_over_idle", 0.999, twolane, "idle"),
            ("p999_twolane_over_awake", 0.999, twolane, "awake"),
            ("p99_twolane_over_idle", 0.99, twolane, "idle"),
            (
                "p999_second_runtime_over_twolane",
                0.999,
                "second_runtime",
                twolane,
            ),
        ] {
            let name = format!("{name}{suffix}");
            let p = if q == 0.99 { "p99" } else { "p999" };
            report.ratio(&name, &format!("from_send_{p}"), over, under);
            let [pooled_over, pooled_under] =
                [over, under].map(|name| found.pooled_ms(name, "from_send", q));
            report.put(
                format!("{name}_pooled"),
                Ratio::once(pooled_over / pooled_under),
            );
            report.ratio(
                format!("{name}_intended"),
                &format!("from_intended_{p}"),
                over,
                under,
            );
        }
        let name = format!("cpu_throughput_twolane_over_second_runtime{suffix}");
        report.ratio(name, "jobs_per_s", twolane, "second_runtime");
    }
    report.finish();
    let file = folder().join("io_tail.svg");
    match picture::draw(&found, &file) {
        Ok(()) => println!("drawn in {}", file.display()),
        Err(error) => println!("not drawn: {error}"),
    }
}
