//! How small may a piece of work be and still be worth moving off the I/O task?
//!
//! A task of a `current_thread` runtime handles a stream of pieces, each of the same fixed
//! work: 1 µs to 10 ms on an idle core. It has three ways to:
//!
//! - `inline`: it computes them itself,
//! - `one by one`: `handle.spawn_cpu(piece).await`, then the next,
//! - `batches`: `spawn_cpu(pieces).await` with as many pieces as make 1 ms, and
//!   then the next batch. Of pieces of 1 ms or more it is `one by one`.
//!
//! The stream always has a next piece, and takes a unit of Tokio's cooperative budget for it, as
//! Tokio's channels and sockets do: `inline`, a single poll computes up to 128 pieces.
//!
//! Meanwhile another task of that runtime is woken every 2 ms or so by a channel's sender on a
//! plain thread, without waiting for an answer. Its latency is from the stamp that the message
//! bears to the task having it: with `inline` that is the price, with the others it is throughput.
//!
//! The CPU lane has twolane's defaults. With the ways alternates a loop on a plain thread without
//! any runtime: what one core does of the same pieces, the 1 of the throughputs.
//!
//! # What it does not measure
//!
//! Peers of twolane (see `offload`). A CPU lane that is busy with others' jobs, an
//! I/O lane with more than one task that computes. Pieces that touch memory:
//! moving those to another core costs their cache as well.
//!
//! ```text
//! cargo bench --bench small_work              # half a minute
//! cargo bench --bench small_work -- '100 µs'  # one size
//! ```

use std::cell::LazyCell;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::sync::mpsc;
use tokio::task::coop::consume_budget;
use twolane::CpuRuntime;
use twolane_benches::findings::empty_histogram;
use twolane_benches::report::{digits, print_table};
use twolane_benches::tail::client::EVERY;
use twolane_benches::tail::sleep_until;
use twolane_benches::tail::work::Work;
use twolane_benches::{Bench, Contender, Contest, Findings, Sample, current_thread_runtime, lane};

/// The piece, in µs, whose ratio of latencies the report has.
const COMPARED: u64 = 100;
/// How much work the pieces of one batch make, in µs.
const BATCH: u64 = 1_000;
/// What is compared with: it has no runtime.
const ALONE: &str = "alone on a core";
const WAYS: [&str; 3] = ["inline", "one by one", "batches of 1 ms"];

fn main() -> ExitCode {
    let bench = Bench::new("small_work");
    let all = &[1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000];
    let sizes: &[u64] = bench.pick([&[1], &[1, 10, COMPARED, 1_000], all, all]);
    let [warm_up, measured] = bench
        .pick([[5, 20], [30, 150], [30, 200], [50, 500]])
        .map(Duration::from_millis);
    // Of which all sizes are multiples: calibrated one by one, they would not compare.
    let unit = LazyCell::new(|| Work::calibrated(Duration::from_micros(BATCH)));
    let unit = &unit;
    let mut contenders = Vec::new();
    for &us in sizes {
        for way in [ALONE].into_iter().chain(WAYS) {
            let turn = move || {
                let per_batch = if way == WAYS[2] { BATCH / us } else { 1 };
                let pieces = Pieces {
                    work: unit.times(us as f64 / BATCH as f64),
                    per_batch: per_batch.max(1),
                };
                Ok(match way {
                    ALONE => alone(pieces, warm_up, measured / 3),
                    way => beside_another(way, pieces, warm_up, measured),
                })
            };
            contenders.push(Contender::new(name(us, way), turn));
        }
    }
    let rounds = [1, 1, 3, 5];
    let contest =
        Contest::new(&bench, contenders, rounds, Duration::from_secs(60)).ending_threads();
    contest.report(|report| {
        tables(&report.found, sizes);
        let [inline, ours] = ["inline", "one by one"].map(|way| name(COMPARED, way));
        let ratio = format!("inline_p99_over_offloaded_{COMPARED}us_current_thread");
        report.ratio(ratio, "other_task_p99", &inline, &ours);
    })
}

fn name(us: u64, way: &str) -> String {
    format!("current thread/{}/{way}", size(us))
}

fn size(us: u64) -> String {
    match us {
        us if us < 1_000 => format!("{us} µs"),
        us => format!("{} ms", us / 1_000),
    }
}

fn tables(found: &Findings, sizes: &[u64]) {
    let table = |title: &str, cell: &dyn Fn(u64, &str) -> String| {
        let row = |us: &u64| {
            let cells = WAYS.iter().map(|way| cell(*us, way));
            [size(*us)].into_iter().chain(cells).collect()
        };
        let rows: Vec<Vec<String>> = sizes.iter().map(row).collect();
        print_table(title, &[&["a piece"][..], &WAYS].concat(), &rows);
    };
    table("Throughput, one core's being 1", &|us, way| {
        let ratio = found.ratio("pieces_per_s", &name(us, way), &name(us, ALONE));
        digits(ratio.median)
    });
    table("Another task's latency, ms, p50 / p99", &|us, way| {
        let metrics = ["other_task_p50", "other_task_p99"];
        metrics
            .map(|q| digits(found.median(&name(us, way), q)))
            .join(" / ")
    });
}

#[derive(Clone, Copy)]
struct Pieces {
    work: Work,
    per_batch: u64,
}

impl Pieces {
    /// Returns what tells these from the others, so that none can be lost or done twice unnoticed.
    fn compute(self, pieces: std::ops::Range<u64>) -> u64 {
        pieces.inspect(|_| self.work.run()).sum()
    }

    /// Handles them in this way until then. Returns how many they were.
    async fn handle(self, way: &str, cpu: &CpuRuntime, until: Instant) -> u64 {
        let (mut next, mut sum) = (0, 0);
        while Instant::now() < until {
            let batch = next..next + self.per_batch;
            for _ in batch.clone() {
                consume_budget().await;
            }
            next = batch.end;
            sum += match way {
                "inline" => self.compute(batch),
                _ => cpu.spawn_cpu(move || self.compute(batch)).await.unwrap(),
            };
        }
        assert_eq!(
            sum,
            (0..next).sum::<u64>(),
            "a piece was lost, or done twice"
        );
        next
    }
}

fn sample(pieces: u64, took: Duration) -> Sample {
    let rate = pieces as f64 / took.as_secs_f64();
    Sample::of("pieces_per_s", "1/s", rate)
}

/// What one core does of these pieces: on this thread, and nothing else.
fn alone(pieces: Pieces, warm_up: Duration, measured: Duration) -> Sample {
    let handle = |until| {
        let mut handled = 0;
        while Instant::now() < until {
            pieces.compute(handled..handled + 1);
            handled += 1;
        }
        handled
    };
    handle(Instant::now() + warm_up);
    let start = Instant::now();
    let handled = handle(start + measured);
    sample(handled, start.elapsed())
}

/// A stream of pieces is handled this way by one task, and another one is woken meanwhile.
fn beside_another(way: &str, pieces: Pieces, warm_up: Duration, measured: Duration) -> Sample {
    let io = current_thread_runtime();
    let cpu = lane(io.handle(), |lane| lane);
    let warm = Instant::now() + warm_up;
    let end = warm + measured;
    // Unbounded: a sender that waits for a late task would not send what is due meanwhile.
    let (send, messages) = mpsc::unbounded_channel();
    let sender = thread::spawn(move || {
        let mut random = fastrand::Rng::with_seed(7);
        let mut due = Instant::now();
        while due < end {
            sleep_until(due);
            assert!(send.send(Instant::now()).is_ok());
            // Half as far apart to half as far again, so that they don't keep step with the
            // pieces; the same ones in each slice.
            due += EVERY.mul_f64(0.5 + random.f64());
        }
    });
    let sample = io.block_on(async {
        let other = tokio::spawn(receive(messages, warm));
        pieces.handle(way, &cpu, warm).await;
        let start = Instant::now();
        let handled = pieces.handle(way, &cpu, end).await;
        let mut sample = sample(handled, start.elapsed());
        sample.put_latencies("other_task", other.await.unwrap());
        sample
    });
    sender.join().unwrap();
    cpu.shutdown().wait();
    sample
}

async fn receive(mut messages: mpsc::UnboundedReceiver<Instant>, warm: Instant) -> Histogram<u64> {
    let mut latencies = empty_histogram();
    while let Some(sent) = messages.recv().await {
        if sent >= warm {
            latencies.saturating_record(sent.elapsed().as_nanos() as u64);
        }
    }
    latencies
}
