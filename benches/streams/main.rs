//! Is a stream of items that compute ever slower on the CPU lane than in place? (S6)
//!
//! An always-ready source of numbered items, a stage that computes for each (100 ns, 10 µs, 1 ms),
//! and a consumer that checks them. "mix" is 95 % of 10 µs and 5 % of 2 ms, always in the same
//! order. What an item takes is calibrated by a plain loop on an idle core.
//!
//! # The contenders
//!
//! - a plain loop: the 1 of all throughputs;
//! - twolane: `on_cpu(..).map(..)` with `buffered` and `buffer_unordered`, and with an
//!   `Iterator` as the source;
//! - `buffered` of `futures`, over `tokio::task::spawn_blocking` and over twolane's
//!   `spawn_cpu`: a job an item;
//! - `chunks` of about a millisecond before `buffered` over `spawn_blocking`: a job a chunk;
//! - Tokio's channels and a task for each core, on a second runtime (unordered);
//! - rayon's `par_bridge` between two channels (unordered);
//! - goroutines, in a process of their own: a loop; a pipeline of three goroutines, with
//!   and without room in its channels; fan-out and fan-in; a slice for each core;
//! - rayon's `par_iter` over a `Vec`: the limit, since it has all items before and hands
//!   nothing out before the end.
//!
//! Source and consumer of all in Rust are on one Tokio runtime of two workers, and each pool has as
//! many threads as there are cores; twolane's have its weights (`nice`). Its window is 65,536 items
//! for 100 ns, 4,096 for 10 µs and the mix, 256 for 1 ms. The peers have the settings that were
//! best of several: 32 jobs for each core under way at 100 ns and 512 above, room for 8,192 items
//! in a channel. All ways of one kind of item run the same number of items, but of 100 ns the peers
//! have a tenth: a job for each would take seconds. All compare by time an item.
//!
//! # What else is measured
//!
//! - **first output**: from the start of a stream of 10 µs items to where the consumer has
//!   the first output, all threads asleep before;
//! - **beside**: the latency of a TCP echo on the I/O runtime, asked every 2 ms (see `io_tail`),
//!   while streams of 10 µs items run. There `spawn_blocking` has its default of 512 threads.
//!
//! `over_best_rust_peer` compares twolane's ordered stream with the best of the peers,
//! ordered or not; the ratio is the worst of all kinds of items. Ratios of throughput: more
//! is better. `over_go_pipeline` is over the better of the two pipelines.
//!
//! # What it does not measure
//!
//! Items that touch memory: moving those to another core costs their cache as well. A source that
//! waits. More than one stream at a time. A machine that is busy with something else (`others`):
//! twolane's threads then get less than the peers'.
//!
//! ```text
//! cargo bench --bench streams                          # 75 seconds
//! cargo bench --bench streams -- '100 ns/(plain|twol)'  # some rows
//! ```

mod items;
mod lanes;
mod ratios;
mod ways;

use std::cell::LazyCell;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use twolane_benches::go::Go;
use twolane_benches::tail::client;
use twolane_benches::tail::echo::EchoLane;
use twolane_benches::{
    Bench, BoxError, Column, Contender, Contest, Sample, bounded_runtime, median,
};

use crate::items::{Clock, Items, Kind};
use crate::lanes::{Lanes, rate};
use crate::ways::Run;

const LOOP: &str = "plain loop";
const PAR_ITER: &str = "par_iter";

/// The name of a contender in Go, its way there, and the room in its channels.
const GO: [(&str, &str, u64); 5] = [
    ("Go: plain loop", "loop", 0),
    ("Go: pipeline", "pipeline", 0),
    ("Go: pipeline, room", "pipeline", 1_024),
    ("Go: fan-out, fan-in", "fan", 1_024),
    ("Go: a slice a core", "slices", 0),
];

/// By how much fewer small items the peers have.
const FEWER: u64 = 10;
/// Items of 10 µs until whose first output it is measured how long it takes.
const FIRST_OF: u64 = 1_000;
/// All threads fall asleep.
const GAP: Duration = Duration::from_millis(1);
/// Of source and consumer.
const IO_WORKERS: usize = 2;

fn main() -> ExitCode {
    let bench = Bench::new("streams");
    let clock = LazyCell::new(Clock::calibrated);
    let lanes = LazyCell::new(|| {
        let io = Box::leak(Box::new(bounded_runtime(IO_WORKERS)));
        Lanes::new(io.handle().clone())
    });
    let go = Go::new("streams");
    let bed = Bed {
        items: &|kind, count| Items::new(*clock, kind, count),
        lanes: &|| &lanes,
        bench: &bench,
        go: &go,
    };
    let mut contenders = Vec::new();
    for kind in Kind::ALL {
        throughputs(&bed, kind, &mut contenders);
    }
    first_outputs(&bed, &mut contenders);
    let measured = Duration::from_millis(bench.pick([20, 500, 2_000, 3_000]));
    let is_beside = |name| [ways::ORDERED, ways::BLOCKING, ways::WORKERS].contains(&name);
    let beside_ways = ways::all().filter(|(name, _)| is_beside(*name));
    let beside_ways = beside_ways.map(|(name, way)| (name, Some(way)));
    for (name, way) in [("nothing", None)].into_iter().chain(beside_ways) {
        let turn = move || Ok(beside(&bed, way, measured));
        contenders.push(Contender::new(format!("beside/{name}"), turn));
    }
    let contest = Contest::new(&bench, contenders, [1, 1, 3, 9], Duration::from_secs(120));
    contest.report(|report| {
        ratios::throughputs(&report.found);
        let first = "Until the first output of a stream of 10 µs items, µs";
        let column = [Column::spread("first output", "first_output")];
        report.table(first, "first output/", &column);
        let title = "An echo on the I/O runtime beside streams of 10 µs items, ms";
        report.table(title, "beside/", &client::COLUMNS);
        ratios::put(report);
    })
}

/// What all turns have, made at the first.
#[derive(Clone, Copy)]
struct Bed<'a> {
    items: &'a dyn Fn(Kind, u64) -> Items,
    lanes: &'a dyn Fn() -> &'a Lanes,
    bench: &'a Bench,
    go: &'a Go,
}

fn row(kind: Kind, name: &str) -> String {
    format!("{}/{name}", kind.name())
}

fn throughputs<'a>(bed: &Bed<'a>, kind: Kind, contenders: &mut Vec<Contender<'a>>) {
    let bed = *bed;
    let count = bed.bench.pick(kind.counts());
    let fewer = count / if kind == Kind::Ns100 { FEWER } else { 1 };
    // What is not a stream.
    let plain = |name, run: fn(&Lanes, Items)| {
        Contender::new(row(kind, name), move || {
            let (lanes, items) = ((bed.lanes)(), (bed.items)(kind, count));
            let start = Instant::now();
            run(lanes, items);
            Ok(rate(count, start.elapsed()))
        })
    };
    contenders.push(plain(LOOP, |_, items| items.check(items.in_place())));
    for (nth, (name, way)) in ways::all().enumerate() {
        let count = if nth < ways::OURS.len() { count } else { fewer };
        contenders.push(Contender::new(row(kind, name), move || {
            let taken = way((bed.lanes)(), kind, (bed.items)(kind, count));
            Ok(rate(count, taken.all))
        }));
    }
    contenders.push(plain(PAR_ITER, ways::par_iter));
    contenders.extend(GO.map(|(name, way, room)| {
        Contender::new(row(kind, name), move || {
            let printed = in_go(&bed, (way, room), (bed.items)(kind, fewer), 1)?;
            let all = printed.each[0] * fewer as f64;
            Ok(rate(fewer, Duration::from_nanos(all as u64)))
        })
    }));
}

fn first_outputs<'a>(bed: &Bed<'a>, contenders: &mut Vec<Contender<'a>>) {
    let bed = *bed;
    let repetitions = bed.bench.pick([1, 10, 20, 50]);
    let sample = |micros: Vec<f64>| Sample::of("first_output", "us", median(micros));
    let items = move || (bed.items)(Kind::Us10, FIRST_OF);
    for (name, way) in ways::all() {
        contenders.push(Contender::new(format!("first output/{name}"), move || {
            let micros = (0..repetitions).map(|_| {
                thread::sleep(GAP);
                let taken = way((bed.lanes)(), Kind::Us10, items());
                taken.first.as_secs_f64() * 1e6
            });
            Ok(sample(micros.collect()))
        }));
    }
    for (name, way, room) in [GO[1], GO[3]] {
        contenders.push(Contender::new(format!("first output/{name}"), move || {
            Ok(sample(
                in_go(&bed, (way, room), items(), repetitions)?.first,
            ))
        }));
    }
}

/// One value for each repetition.
#[derive(Deserialize)]
struct Printed {
    /// Nanoseconds an item.
    each: Vec<f64>,
    /// Microseconds until the first output.
    first: Vec<f64>,
}

fn in_go(
    bed: &Bed<'_>,
    (way, room): (&str, u64),
    items: Items,
    repetitions: u64,
) -> Result<Printed, BoxError> {
    let args = [
        ("room", room),
        ("short", items.short),
        ("long", items.long),
        ("count", items.count),
        ("rounds", repetitions),
    ];
    let args = args.map(|(name, value)| format!("-{name}={value}"));
    bed.go.run(&[&[format!("-way={way}")][..], &args].concat())
}

/// An echo on the I/O lane, while one stream after the other runs until the slice is over.
fn beside(bed: &Bed<'_>, way: Option<Run>, measured: Duration) -> Sample {
    // A plain loop over them takes the whole time. So few streams begin or end meanwhile.
    let items = (bed.items)(Kind::Us10, measured.as_millis() as u64 * 100);
    let io = EchoLane::start(IO_WORKERS);
    let lanes = Lanes::new(io.handle().clone());
    let end = Instant::now() + twolane_benches::tail::WARM_UP + measured;
    thread::scope(|scope| {
        let streams = scope.spawn(|| {
            let mut done = 0;
            while let Some(way) = way.filter(|_| Instant::now() < end) {
                way(&lanes, Kind::Us10, items);
                done += items.count;
            }
            done
        });
        let mut sample = client::slice(io.address(), measured, || (0, Duration::ZERO));
        sample.put("done", "items", streams.join().unwrap() as f64);
        sample
    })
}
