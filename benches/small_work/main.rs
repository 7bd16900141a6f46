//! How small may a piece of work be and still be worth moving off the I/O task?
//!
//! A task of an I/O runtime handles a stream of pieces, each of the same fixed
//! work: 1 µs to 10 ms on an idle core. It has six ways to:
//!
//! - `inline`: it computes them itself,
//! - `inline, yields`: the same, with a `yield_now` after each piece,
//! - `one by one`: `handle.spawn_cpu(piece).await`, then the next,
//! - `run_cpu`: `handle.run_cpu(piece).await`, which computes in place or on the CPU lane,
//! - `several at once`: the same with up to two for each thread of the CPU lane
//!   in flight, in a `FuturesUnordered`,
//! - `batches`: `spawn_cpu(pieces).await` with as many pieces as make 1 ms, and
//!   then the next batch. Of pieces of 1 ms or more it is `one by one`.
//!
//! The stream always has a next piece, and takes a unit of Tokio's cooperative
//! budget for it, as Tokio's channels and sockets do: `inline`, a single poll
//! computes up to 128 pieces.
//!
//! Meanwhile another task of the same I/O runtime is woken about every 2 ms by
//! a channel's sender on a plain thread, at times fixed before and without
//! waiting for an answer. Its latency is from the stamp that the message bears
//! to the task having it (the JSON also has it from when the message was due,
//! which includes the sender's own lateness on a busy machine): with `inline`
//! and `inline, yields` that is the price, with the others it is throughput and
//! CPU time.
//!
//! Once on a Tokio runtime of two workers, once on one of the current thread.
//! The CPU lane has twolane's defaults. With the ways alternates a loop on a plain
//! thread without any runtime: what one core does of the same pieces, the 1 of the
//! throughputs.
//!
//! # What it does not measure
//!
//! Peers of twolane (see `offload`). A CPU lane that is busy with others' jobs, an
//! I/O lane with more than one task that computes. Pieces that touch memory:
//! moving those to another core costs their cache as well. More cores than there
//! are: `several at once` can't be faster than the lane's threads. A latency longer than a slice: where `inline` keeps the other task
//! waiting for all of it, the slice's end is the figure's.
//!
//! ```text
//! cargo bench --bench small_work              # a minute
//! cargo bench --bench small_work -- '100 µs'  # one size
//! ```

mod lanes;
mod pieces;
mod wakeups;
mod ways;

use std::cell::LazyCell;
use std::time::Duration;

use twolane_benches::report::{digits, print_table};
use twolane_benches::{Bench, Contender, Contest, Findings, Ratio, Report};

use lanes::{IO_RUNTIMES, Span};
use pieces::{Pieces, Unit};
use ways::{ALONE, Way};

/// The piece, in µs, whose ratio of latencies the report has.
const COMPARED: u64 = 100;
/// How much of inline's throughput an offload has to reach.
const ENOUGH: f64 = 0.9;
/// Milliseconds that another task may wait.
const TOO_LATE: f64 = 1.0;

fn main() {
    let bench = Bench::new("small_work");
    let few = vec![1, 10, COMPARED, 1_000];
    let all = vec![1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000];
    let sizes: Vec<u64> = bench.pick([few[..1].to_vec(), few, all.clone(), all]);
    let [warm_up, measured] = bench.pick([[5, 20], [30, 150], [30, 200], [50, 500]]);
    let span = |milliseconds| Span {
        warm_up: Duration::from_millis(warm_up),
        measured: Duration::from_millis(milliseconds),
    };
    let unit = LazyCell::new(Unit::calibrated);
    let unit = &unit;
    let mut contenders = Vec::new();
    for io in IO_RUNTIMES {
        contenders.push(Contender::new(format!("{io}/idle"), move || {
            Ok(lanes::idle(io, span(measured)))
        }));
        for &us in &sizes {
            for (way_name, way) in Way::ALL {
                let turn = move || {
                    let pieces = Pieces::new(**unit, us);
                    Ok(match way {
                        // There are no latencies to count.
                        Way::Alone => lanes::alone(pieces, span(measured / 3)),
                        _ => lanes::run(io, way, pieces, span(measured)),
                    })
                };
                contenders.push(Contender::new(name(io, us, way_name), turn));
            }
        }
    }
    let contest = Contest::new(
        contenders,
        bench.rounds([1, 1, 2, 5]),
        Duration::from_secs(60),
    )
    .ending_threads();
    let Some(found) = bench.run(contest) else {
        return;
    };

    let mut report = Report::new(bench.name, &found);
    for (io, suffix) in IO_RUNTIMES.into_iter().zip(["", "_current_thread"]) {
        tables(&found, io, &sizes);
        println!();
        break_even(&found, io, suffix, &sizes, &mut report);
        let ours = name(io, COMPARED, "one by one");
        for (way, inline) in [("inline", "inline"), ("inline_yields", "inline, yields")] {
            let ratio = format!("{way}_p99_over_offloaded_{COMPARED}us{suffix}");
            report.ratio(ratio, "other_task_p99", &name(io, COMPARED, inline), &ours);
        }
    }
    report.finish();
}

fn name(io: &str, us: u64, way: &str) -> String {
    format!("{io}/{}/{way}", size(us))
}

fn size(us: u64) -> String {
    match us {
        us if us < 1_000 => format!("{us} µs"),
        us => format!("{} ms", us / 1_000),
    }
}

fn tables(found: &Findings, io: &str, sizes: &[u64]) {
    let table = |title: &str, cell: &dyn Fn(u64, &str) -> String| {
        let ways: Vec<&str> = Way::ALL.iter().skip(1).map(|(name, _)| *name).collect();
        let head = [&["a piece"][..], &ways].concat();
        let row = |us: &u64| {
            let cells = ways.iter().map(|way| cell(*us, way));
            [size(*us)].into_iter().chain(cells).collect()
        };
        let rows: Vec<Vec<String>> = sizes.iter().map(row).collect();
        print_table(&format!("{title}; I/O runtime: {io}"), &head, &rows);
    };
    let over_alone = |metric, us, way: &str| {
        let ratio = found.ratio(metric, &name(io, us, way), &name(io, us, ALONE));
        digits(ratio.median)
    };
    let latency = |name: &str| {
        let [p50, p99] =
            ["other_task_p50", "other_task_p99"].map(|q| digits(found.median(name, q)));
        format!("{p50} / {p99}")
    };
    table("Throughput, one core's being 1", &|us, way| {
        over_alone("pieces_per_s", us, way)
    });
    let idle = latency(&format!("{io}/idle"));
    table(
        &format!("Another task's latency, ms, p50 / p99 ({idle} without any work)"),
        &|us, way| latency(&name(io, us, way)),
    );
    table(
        "CPU time for a piece, alone on a core being 1",
        &|us, way| over_alone("cpu_per_piece", us, way),
    );
}

/// From which size on something holds for all that were measured: nothing between them
/// is guessed.
fn break_even(found: &Findings, io: &str, suffix: &str, sizes: &[u64], report: &mut Report<'_>) {
    let reaches = |way: &'static str| {
        move |us| {
            let [ours, inline] = [way, "inline"].map(|way| name(io, us, way));
            found.ratio("pieces_per_s", &ours, &inline).median >= ENOUGH
        }
    };
    let is_late =
        |way: &'static str| move |us| found.median(&name(io, us, way), "other_task_p99") > TOO_LATE;
    type Line<'a> = (&'a str, &'a str, &'a dyn Fn(u64) -> bool);
    let lines: [Line<'_>; 6] = [
        (
            "offload_break_even",
            "one by one: 90 % of inline's",
            &reaches("one by one"),
        ),
        (
            "several_break_even",
            "several at once: the same",
            &reaches("several at once"),
        ),
        (
            "batch_break_even",
            "batches of 1 ms: the same",
            &reaches("batches of 1 ms"),
        ),
        (
            "inline_late_from",
            "inline: another's p99 over 1 ms",
            &is_late("inline"),
        ),
        (
            "inline_yields_late_from",
            "inline, yields: the same",
            &is_late("inline, yields"),
        ),
        (
            "offload_late_from",
            "one by one: the same",
            &is_late("one by one"),
        ),
    ];
    for (ratio, sentence, holds) in lines {
        let holding = sizes.iter().rev().take_while(|us| holds(**us)).last();
        match holding {
            Some(us) => println!("- {sentence} from {} on", size(*us)),
            None => println!("- {sentence} for none of these sizes"),
        }
        let from = holding.map_or(f64::NAN, |us| *us as f64);
        report.put(format!("{ratio}_us{suffix}"), Ratio::once(from));
    }
}
