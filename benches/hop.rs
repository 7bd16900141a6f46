//! What does a job pay for what goes with it: its span, its hops to the I/O
//! lane, its questions?
//!
//! - **span**: a batch of closures that do nothing, submitted and awaited from a
//!   task of the I/O runtime, ns a job: without a subscriber, and inside a span
//!   of one (`tracing_subscriber`'s registry, which records spans and no
//!   events). As a process that has once had a subscriber never is one without,
//!   each is a process of its own, in alternation.
//! - **spawn_io**: from inside a job, a future of nothing on the I/O lane, and
//!   back, one after the other; on both backends.
//! - **spawn_cpu_with**: the same batch, without a subscriber, of closures that
//!   are handed their `JobContext`.
//! - **checkpoint**: `JobContext::checkpoint` from inside a closure, one after the
//!   other, without a deadline and with one that is far.
//!
//! A batch's figure is the best of twenty in each process. The figure
//! printed is the median of the rounds, the spread their quartiles, the ratio
//! the median of the rounds' own ratios.
//!
//! What an offload itself costs beside its peers: `offload`. What a switch and
//! `yield_if_due` cost: `switch`.
//!
//! `cargo bench --bench hop` (half a minute), `-- --quick` (a few seconds). The
//! span needs the feature `tracing`, which is on by default.

mod support;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Ratio, Report, has_flag, in_turn, is_quick, quantile};
use twolane::{Backend, CpuRuntime, Handle, Permit, Task};

const PLAIN: &str = "--inside-plain";
const TRACED: &str = "--inside-traced";

fn main() {
    if has_flag(PLAIN) {
        println!("{}", inside(None));
    } else if has_flag(TRACED) {
        let subscriber = tracing_subscriber::registry();
        tracing::subscriber::set_global_default(subscriber).unwrap();
        println!("{}", inside(Some(tracing::info_span!("request"))));
    } else {
        outside();
    }
}

/// Starts the processes, round by round.
fn outside() {
    let rounds = if is_quick() { 3 } else { 21 };
    let mut figures: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for round in 0..rounds {
        for turn in in_turn(2, round) {
            let mut inside = Command::new(std::env::current_exe().unwrap());
            inside.arg([PLAIN, TRACED][turn]).stderr(Stdio::inherit());
            if is_quick() {
                inside.arg("--quick");
            }
            let run = inside.output().unwrap();
            assert!(run.status.success(), "{}", run.status);
            let found: Value = serde_json::from_slice(&run.stdout).unwrap();
            for (name, ns) in found.as_object().unwrap() {
                let ns = ns.as_f64().unwrap();
                figures.entry(name.clone()).or_default().push(ns);
            }
        }
    }

    println!("{:32} {:>10} {:>20}", "", "median ns", "quartiles");
    let mut report = Report::new("hop");
    for (name, values) in &figures {
        let [low, median, high] = [0.25, 0.5, 0.75].map(|q| quantile(values.iter().copied(), q));
        println!(
            "{name:32} {median:>10.0} {:>20}",
            format!("{low:.0} to {high:.0}")
        );
        report.row(name, "time", "ns", median, values.len());
    }
    let values = |name: &str| figures[name].iter().copied();
    for (name, over) in [
        ("span_over_none", IN_SPAN),
        ("context_over_none", WITH_CONTEXT),
    ] {
        let ratio = Ratio::of_rounds(values(over), values(NO_SUBSCRIBER));
        println!("{name}: {ratio}");
        report.ratio(name, ratio.median);
    }
    report.write();
}

const NO_SUBSCRIBER: &str = "batch, no subscriber";
const IN_SPAN: &str = "batch, in a span";
const WITH_CONTEXT: &str = "batch of spawn_cpu_with";

/// The figures of one process, ns.
fn inside(span: Option<tracing::Span>) -> Value {
    let times = if is_quick() { 200 } else { 5_000 };
    let io = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let lane = |backend| {
        let builder = CpuRuntime::builder().backend(backend);
        builder.io_handle(io.handle().clone()).build().unwrap()
    };
    let rayon = lane(Backend::Rayon);
    let is_traced = span.is_some();
    let batches = {
        let handle = rayon.handle();
        async move {
            let [mut plain, mut with_context] = [f64::INFINITY; 2];
            for _ in 0..20 {
                let submit = || {
                    let _in_span = span.as_ref().map(tracing::Span::enter);
                    handle.spawn_cpu(|| black_box(1))
                };
                plain = plain.min(batch(times, submit).await);
                if !is_traced {
                    let submit = || handle.spawn_cpu_with(|_| black_box(1));
                    with_context = with_context.min(batch(times, submit).await);
                }
            }
            [plain, with_context]
        }
    };
    let [plain, with_context] = io.block_on(io.spawn(batches)).unwrap();
    if is_traced {
        return json!({ IN_SPAN: plain });
    }
    let runtime = lane(Backend::Runtime);
    let far = Instant::now() + Duration::from_secs(3_600);
    let checkpoints = |permit: Permit| checkpoints(permit, times);
    let permit = || rayon.handle().try_admit().unwrap();
    json!({
        NO_SUBSCRIBER: plain,
        WITH_CONTEXT: with_context,
        "spawn_io in a job, Rayon": hops(&rayon.handle(), times),
        "spawn_io in a job, Runtime": hops(&runtime.handle(), times),
        "checkpoint, no deadline": checkpoints(permit()),
        "checkpoint, a deadline": checkpoints(permit().with_deadline(far)),
    })
}

/// Submits so many, awaits them all; ns each.
async fn batch(times: usize, submit: impl Fn() -> Task<u8>) -> f64 {
    let start = Instant::now();
    let tasks: Vec<_> = (0..times).map(|_| submit()).collect();
    for task in tasks {
        task.await.unwrap();
    }
    start.elapsed().as_nanos() as f64 / times as f64
}

fn hops(handle: &Handle, times: usize) -> f64 {
    let job = handle.spawn(async move {
        let start = Instant::now();
        for _ in 0..times {
            twolane::spawn_io(async { black_box(1) }).await.unwrap();
        }
        start.elapsed().as_nanos() as f64 / times as f64
    });
    job.wait().unwrap()
}

fn checkpoints(permit: Permit, times: usize) -> f64 {
    let job = permit.spawn_cpu_with(move |job| {
        let start = Instant::now();
        for _ in 0..times {
            black_box(job.checkpoint()).unwrap();
        }
        start.elapsed().as_nanos() as f64 / times as f64
    });
    job.wait().unwrap()
}
