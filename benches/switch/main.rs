//! What does it cost to switch from one future to another, to wake one, and to start one? (S5)
//!
//! Where goroutines are cheap, futures of a lane should be: a loop that gives way
//! after each item, or that starts a job for each, pays this each time.
//!
//! # What is measured
//!
//! Nanoseconds each, a mean.
//!
//! - *switch*: futures that do nothing but `twolane::yield_now().await`; alone, and 100 beside each
//!   other. Counted from when all have been polled, over the number of all their yields. On several
//!   threads they run side by side, and a figure is what a switch costs the clock, not what it costs
//!   a core. Peers: `tokio::task::yield_now()`, Go's `runtime.Gosched()`.
//! - *start and join*: `spawn(async { 1 })`, from inside a job of the same lane, awaited at once.
//!   Peers: `tokio::spawn` in a task; in Go a goroutine that sends on a channel.
//! - *wake*, without any yield of a library: a future that calls `cx.waker().wake_by_ref()` and
//!   returns `Poll::Pending`, over and over, alone in its lane. It is what a lane does not know for
//!   a yield: what a channel, a `select!` or a `FuturesUnordered` does to a job.
//! - `yield_if_due().await` that is not due, called as users do: in the loop of an `async` block in a
//!   job, less the same loop without the call. What an `.await` costs by itself is in the figure.
//!
//! # The contenders
//!
//! twolane; Tokio's workers without drivers: the cheapest Tokio there is; goroutines, in a process
//! of their own. All on one thread (`GOMAXPROCS(1)`), and then on as many as the machine has cores
//! (`GOMAXPROCS` as it comes).
//!
//! # What it does not measure
//!
//! A future with state to speak of, switches under a load that computes (`late_job`), wake-ups from
//! threads outside the lane, the way from the I/O lane and back (`hop`), a lane at a nice value.
//!
//! ```text
//! cargo bench --bench switch                  # half a minute
//! cargo bench --bench switch -- 'one thread'  # half of it
//! ```

mod measure;
mod sides;

use std::process::ExitCode;
use std::time::Duration;

use twolane_benches::go::Go;
use twolane_benches::{Bench, Column, Contender, Contest, Sample, cores};

use crate::sides::Side;

/// One thread, and one for each core.
const WIDTHS: [&str; 2] = ["one thread", "all cores"];

/// Name, and how many in a turn.
const CASES: [(&str, u64); 4] = [
    ("switch_alone", 200_000),
    ("switch_100", 200_000),
    ("start", 20_000),
    ("self_wake", 200_000),
];
/// Of a job of twolane on one thread.
const YIELD: (&str, u64) = ("yield_if_due", 5_000_000);

fn main() -> ExitCode {
    let bench = Bench::new("switch");
    let less = bench.pick([1_000, 10, 1, 1]);
    let mut contenders = Vec::new();
    for (width, threads) in WIDTHS.into_iter().zip([1, cores()]) {
        for side in Side::ALL {
            let yields = (side == Side::Twolane && threads == 1).then_some(YIELD);
            let go = Go::new("switch");
            contenders.push(Contender::new(format!("{width}/{side}"), move || {
                if side == Side::Goroutines {
                    return go.figures(&in_go(threads, less), "ns");
                }
                let mut sample = Sample::default();
                for (case, n) in CASES.into_iter().chain(yields) {
                    let n = (n / less).max(1);
                    let took = sides::time(side, threads, case, n);
                    sample.put(case, "ns", took.as_nanos() as f64 / n as f64);
                }
                Ok(sample)
            }));
        }
    }
    let contest = Contest::new(&bench, contenders, [1, 3, 9, 31], Duration::from_secs(120))
        .warming_up()
        .ending_threads();
    contest.report(|report| {
        for width in WIDTHS {
            let columns = [
                Column::spread("switch, alone", "switch_alone"),
                Column::spread("100", "switch_100"),
                Column::spread("start and join", "start"),
                Column::spread("one wakes itself", "self_wake"),
                Column::spread("yield_if_due, not due", YIELD.0),
            ];
            report.table(&format!("ns each, {width}"), &format!("{width}/"), &columns);
        }
        // Without a suffix: one alone, as the switches of others are quoted. With more,
        // Tokio's share their lap through its scheduler; hence the others.
        report.ratios(
            "
            switch_over_tokio: switch_alone of one thread/twolane / one thread/tokio, no drivers
            switch_over_tokio_100: switch_100 of one thread/twolane / one thread/tokio, no drivers
            switch_over_tokio_100_cores: switch_100 of all cores/twolane / all cores/tokio, no drivers
            switch_over_gosched: switch_alone of one thread/twolane / one thread/goroutines
            switch_over_gosched_100: switch_100 of one thread/twolane / one thread/goroutines
            switch_over_gosched_100_cores: switch_100 of all cores/twolane / all cores/goroutines
            start_over_tokio: start of one thread/twolane / one thread/tokio, no drivers
            start_over_go: start of one thread/twolane / one thread/goroutines
            self_wake_over_tokio: self_wake of one thread/twolane / one thread/tokio, no drivers
            self_wake_over_tokio_cores: self_wake of all cores/twolane / all cores/tokio, no drivers
            ",
        );
    })
}

fn in_go(threads: usize, less: u64) -> [String; 3] {
    // 0: as it comes.
    let procs = if threads == 1 { 1 } else { 0 };
    let args = [
        ("procs", procs),
        ("switches", (200_000 / less).max(1_000)),
        ("starts", (20_000 / less).max(100)),
    ];
    args.map(|(name, n)| format!("-{name}={n}"))
}
