//! What does a hop from one lane to the other and back cost?
//!
//! Each row is a round trip of nothing: submit from a task of the I/O runtime
//! (or from inside a CPU job, where it says so), await, next. Peers:
//! `tokio::task::spawn_blocking`, `Handle::spawn` on a second runtime, rayon
//! with a oneshot by hand. All in one process, in alternation: round by round,
//! in a rotating order; the figure is the median round's mean, the spread its
//! quartiles, the ratio the median of the rounds' own ratios.
//!
//! It does not measure throughput, a busy lane, or more than one submitter.
//! On a machine with few cores a hot round trip finds the worker awake, as
//! here; from a cold one, add the time of a wake-up.
//!
//! `cargo bench --bench hop` (half a minute), `-- --quick` (a few seconds).

mod support;

use std::collections::BTreeMap;
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::time::Instant;

use support::{Ratio, Report, in_turn, is_quick, quantile};
use twolane::{Backend, CpuRuntime};

type Round = Box<dyn Fn(u32) -> Pin<Box<dyn Future<Output = f64> + Send>>>;

/// Times `n` round trips; nanoseconds each.
fn timed<F, Fut>(trip: F) -> Round
where
    F: Fn() -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    Box::new(move |n| {
        let trip = trip.clone();
        Box::pin(async move {
            let start = Instant::now();
            for _ in 0..n {
                trip().await;
            }
            start.elapsed().as_nanos() as f64 / f64::from(n)
        })
    })
}

/// The same inside a job of `cpu`, for what is called there.
fn timed_in_job(
    cpu: &CpuRuntime,
    in_job: fn(u32) -> Pin<Box<dyn Future<Output = ()> + Send>>,
) -> Round {
    let handle = cpu.handle();
    Box::new(move |n| {
        let handle = handle.clone();
        Box::pin(async move {
            handle
                .spawn(async move {
                    let start = Instant::now();
                    in_job(n).await;
                    start.elapsed().as_nanos() as f64 / f64::from(n)
                })
                .await
                .unwrap()
        })
    })
}

fn main() {
    let (rounds, trips) = if is_quick() { (7, 200) } else { (41, 2_000) };

    let io = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let lane = |backend| {
        CpuRuntime::builder()
            .backend(backend)
            .io_handle(io.handle().clone())
            .build()
            .unwrap()
    };
    let (rayon_lane, runtime_lane) = (lane(Backend::Rayon), lane(Backend::Runtime));
    let second = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(rayon_lane.handle().threads())
        .build()
        .unwrap();
    let pool = std::sync::Arc::new(
        rayon::ThreadPoolBuilder::new()
            .num_threads(rayon_lane.handle().threads())
            .build()
            .unwrap(),
    );

    let closure = |cpu: &CpuRuntime| {
        let handle = cpu.handle();
        timed(move || {
            let task = handle.spawn_cpu(|| black_box(1));
            async move { assert_eq!(task.await.unwrap(), 1) }
        })
    };
    let future = |cpu: &CpuRuntime| {
        let handle = cpu.handle();
        timed(move || {
            let task = handle.spawn(async { black_box(1) });
            async move { assert_eq!(task.await.unwrap(), 1) }
        })
    };
    let spawn_io: fn(u32) -> Pin<Box<dyn Future<Output = ()> + Send>> = |n| {
        Box::pin(async move {
            for _ in 0..n {
                twolane::spawn_io(async { black_box(1) }).await.unwrap();
            }
        })
    };
    let second_handle = second.handle().clone();
    let contenders: Vec<(&str, Round)> = vec![
        ("spawn_cpu, Rayon", closure(&rayon_lane)),
        ("spawn_cpu, Runtime", closure(&runtime_lane)),
        ("spawn, Rayon", future(&rayon_lane)),
        ("spawn, Runtime", future(&runtime_lane)),
        (
            "spawn_io in a job, Rayon",
            timed_in_job(&rayon_lane, spawn_io),
        ),
        (
            "spawn_io in a job, Runtime",
            timed_in_job(&runtime_lane, spawn_io),
        ),
        (
            "current_job in a job, Rayon",
            timed_in_job(&rayon_lane, |n| {
                Box::pin(async move {
                    for _ in 0..n {
                        black_box(twolane::current_job());
                    }
                })
            }),
        ),
        (
            "checkpoint in a job, Rayon",
            timed_in_job(&rayon_lane, |n| {
                Box::pin(async move {
                    for _ in 0..n {
                        black_box(twolane::checkpoint()).unwrap();
                    }
                })
            }),
        ),
        (
            "yield_if_due, not due",
            timed_in_job(&rayon_lane, |n| {
                Box::pin(async move {
                    for _ in 0..n {
                        twolane::yield_if_due().await;
                    }
                })
            }),
        ),
        (
            "peer: spawn_blocking",
            timed(|| async {
                assert_eq!(
                    tokio::task::spawn_blocking(|| black_box(1)).await.unwrap(),
                    1
                );
            }),
        ),
        (
            "peer: second runtime, spawn",
            timed(move || {
                let task = second_handle.spawn(async { black_box(1) });
                async move { assert_eq!(task.await.unwrap(), 1) }
            }),
        ),
        (
            "peer: rayon and a oneshot",
            timed(move || {
                let (done, output) = tokio::sync::oneshot::channel();
                pool.spawn(move || done.send(black_box(1)).unwrap());
                async move { assert_eq!(output.await.unwrap(), 1) }
            }),
        ),
    ];

    let mut figures: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for round in 0..=rounds {
        for turn in in_turn(contenders.len(), round) {
            let (name, run) = &contenders[turn];
            let ns = io.block_on(io.spawn(run(trips))).unwrap();
            // The first round warms up.
            if round > 0 {
                figures.entry(name).or_default().push(ns);
            }
        }
    }

    report(&contenders, &figures, rounds);
    second.shutdown_background();
}

fn report(contenders: &[(&str, Round)], figures: &BTreeMap<&str, Vec<f64>>, rounds: usize) {
    let blocking = &figures["peer: spawn_blocking"];
    println!(
        "{:32} {:>10} {:>20} {:>18}",
        "round trip", "median ns", "quartiles", "over spawn_blocking"
    );
    let mut report = Report::new("hop");
    for (name, _) in contenders {
        let values = &figures[name];
        let ratio = Ratio::of_rounds(values.iter().copied(), blocking.iter().copied()).median;
        let [low, median, high] = [0.25, 0.5, 0.75].map(|q| quantile(values.iter().copied(), q));
        println!(
            "{name:32} {median:>10.0} {:>20} {ratio:>18.2}",
            format!("{low:.0} to {high:.0}")
        );
        report.row(name, "round_trip", "ns", median, rounds);
        report.ratio(&format!("{name} / spawn_blocking"), ratio);
    }
    report.write();
}
