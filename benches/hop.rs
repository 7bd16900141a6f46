//! What does a job pay for what goes with it: its span, its hops to the I/O lane, its
//! questions, its streams from there?
//!
//! - **batch**: closures that do nothing, submitted 5,000 at a time and awaited from a
//!   task of the I/O runtime: without a subscriber; inside a span of one
//!   (`tracing_subscriber`'s registry, which records spans and no events); and, without
//!   one, closures that are handed their `JobContext`. As a process that has once had a
//!   subscriber never is one without, each is a process of its own.
//! - **spawn_io**: from inside a job, a future of nothing on the I/O lane, and back, one
//!   after the other; on both backends.
//! - **checkpoint**: `JobContext::checkpoint` from inside a closure, one after the
//!   other, without a deadline and with one that is far.
//! - **bridge**: a job reads a stream of chunks from the I/O lane, for several sizes of
//!   chunk. The stream copies each chunk, as a socket's would be, and always has the
//!   next one. By `stream_from_io` with a limit of 1 MiB; by a task of the I/O runtime
//!   and Tokio's `mpsc` with room for as much, by hand; and *in place*: the job polls
//!   the stream itself, and nothing crosses.
//!
//! The figures are means and criterion's; the ratios come from rounds in alternation (see
//! `twolane_benches::means`). A round trip beside its peers: `offload`. A switch and
//! `yield_if_due`: `switch`. It does not measure a network.
//!
//! ```text
//! cargo bench --bench hop              # half a minute
//! cargo bench -- hop/bridge            # the bridge alone
//! ```

use std::hint::black_box;
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt, stream};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use twolane::{Backend, CpuRuntime, Handle, Task};
use twolane_benches::means::{Case, Timed};
use twolane_benches::{Bench, Column, Report, child};

/// What a process of the batches is asked to do.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Role {
    kind: Kind,
    jobs: u64,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
enum Kind {
    Plain,
    InSpan,
    WithContext,
}

const NO_SUBSCRIBER: &str = "no subscriber";
const BATCH: u64 = 5_000;
const CHUNKS: [(&str, usize); 3] = [
    ("bridge_1_KiB", 1 << 10),
    ("bridge_16_KiB", 16 << 10),
    ("bridge_256_KiB", 256 << 10),
];
const BRIDGED: &str = "stream_from_io";
const CHANNEL: &str = "mpsc by hand";
const IN_PLACE: &str = "in place";
/// What the bridge may buffer.
const LIMIT: usize = 1 << 20;

fn main() {
    if let Some(Role { kind, jobs }) = child::role() {
        child::answer(&batches(kind, jobs).as_nanos());
    }
    let bench = Bench::new("hop");
    let less = bench.pick([100, 10, 1, 1]);
    let case = |name, n: u64| Case::new(name, n / less);
    let io = io_runtime();
    let [rayon, runtime] = [Backend::Rayon, Backend::Runtime].map(|backend| lane(&io, backend));
    let mut contenders = Vec::new();
    let mut add = |name: &str, cases, time| {
        contenders.push(Timed {
            name: name.to_owned(),
            cases,
            time,
            others: Vec::new(),
            other: Box::new(|_, _| Ok(())),
        });
    };
    for (name, kind) in [
        (NO_SUBSCRIBER, Kind::Plain),
        ("in a span", Kind::InSpan),
        ("spawn_cpu_with", Kind::WithContext),
    ] {
        let time = move |_: &Case, n: u64| {
            // A process for a few jobs would measure its own first steps.
            let jobs = n.max(4 * BATCH);
            let nanos: u64 = child::ask(&Role { kind, jobs }).unwrap();
            Duration::from_nanos(nanos).mul_f64(n as f64 / jobs as f64)
        };
        add(name, vec![case("batch", 20 * BATCH)], Box::new(time));
    }
    for (name, lane) in [("Rayon", &rayon), ("Runtime", &runtime)] {
        let handle = lane.handle();
        let time = move |_: &Case, n| hops(&handle, n);
        add(name, vec![case("spawn_io", 5_000)], Box::new(time));
    }
    let far = Instant::now() + Duration::from_secs(3_600);
    for (name, deadline) in [("no deadline", None), ("a deadline", Some(far))] {
        let handle = rayon.handle();
        let time = move |_: &Case, n| checkpoints(&handle, deadline, n);
        add(name, vec![case("checkpoint", 500_000)], Box::new(time));
    }
    let chunks = CHUNKS.map(|(name, bytes)| Case {
        bytes: Some(bytes as u64),
        ..case(name, (64 << 20) / bytes as u64)
    });
    for name in [BRIDGED, CHANNEL, IN_PLACE] {
        let (handle, io) = (rayon.handle(), io.handle().clone());
        let time = move |case: &Case, n| {
            let chunks = chunks_of(case.bytes.unwrap() as usize, n);
            let job = match name {
                BRIDGED => {
                    let bridged = handle.stream_from_io(chunks, LIMIT, Vec::len);
                    handle.spawn(read(bridged.map(Result::unwrap)))
                }
                CHANNEL => {
                    let room = LIMIT / case.bytes.unwrap() as usize;
                    let (send, mut receive) = tokio::sync::mpsc::channel(room);
                    io.spawn(async move {
                        let mut chunks = std::pin::pin!(chunks);
                        while let Some(chunk) = chunks.next().await {
                            send.send(chunk).await.unwrap();
                        }
                    });
                    handle.spawn(read(stream::poll_fn(move |cx| receive.poll_recv(cx))))
                }
                _ => handle.spawn(read(chunks)),
            };
            let (took, read) = job.wait().unwrap();
            assert_eq!(read, n * case.bytes.unwrap());
            took
        };
        add(name, chunks.to_vec(), Box::new(time));
    }
    let Some(found) = bench.means(contenders, bench.rounds([1, 3, 7, 21]), false) else {
        return;
    };

    let mut report = Report::new(bench.name, &found);
    report.table(
        "ns each",
        "",
        &[
            Column::spread("batch, a job", "batch"),
            Column::spread("spawn_io", "spawn_io"),
            Column::spread("checkpoint", "checkpoint"),
        ],
    );
    let columns = CHUNKS.map(|(name, _)| Column::spread(name, name));
    report.table("ns a chunk", "", &columns);
    report.ratio("span_over_none", "batch", "in a span", NO_SUBSCRIBER);
    report.ratio(
        "context_over_none",
        "batch",
        "spawn_cpu_with",
        NO_SUBSCRIBER,
    );
    for (chunk, _) in CHUNKS {
        report.ratio(format!("{chunk}_over_channel"), chunk, BRIDGED, CHANNEL);
        report.ratio(format!("{chunk}_over_in_place"), chunk, BRIDGED, IN_PLACE);
    }
    report.finish();
}

fn io_runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

fn lane(io: &Runtime, backend: Backend) -> CpuRuntime {
    let builder = CpuRuntime::builder().backend(backend);
    builder.io_handle(io.handle().clone()).build().unwrap()
}

/// So many closures in batches, in a process of their own.
fn batches(kind: Kind, jobs: u64) -> Duration {
    let span = match kind {
        Kind::InSpan => {
            let subscriber = tracing_subscriber::registry();
            tracing::subscriber::set_global_default(subscriber).unwrap();
            Some(tracing::info_span!("request"))
        }
        _ => None,
    };
    let io = io_runtime();
    let cpu = lane(&io, Backend::Rayon);
    let handle = cpu.handle();
    let batches = async move {
        let submit = || -> Task<u8> {
            let _in_span = span.as_ref().map(tracing::Span::enter);
            match kind {
                Kind::WithContext => handle.spawn_cpu_with(|_| Ok(black_box(1))),
                _ => handle.spawn_cpu(|| black_box(1)),
            }
        };
        let mut start = Instant::now();
        // The first batch warms up.
        for batch in 0..=jobs.div_ceil(BATCH) {
            let tasks: Vec<_> = (0..BATCH).map(|_| submit()).collect();
            for task in tasks {
                task.await.unwrap();
            }
            if batch == 0 {
                start = Instant::now();
            }
        }
        start
            .elapsed()
            .mul_f64(jobs as f64 / (jobs.div_ceil(BATCH) * BATCH) as f64)
    };
    io.block_on(io.spawn(batches)).unwrap()
}

fn hops(handle: &Handle, n: u64) -> Duration {
    let job = handle.spawn(async move {
        let start = Instant::now();
        for _ in 0..n {
            twolane::spawn_io(async { black_box(1) }).await.unwrap();
        }
        start.elapsed()
    });
    job.wait().unwrap()
}

fn checkpoints(handle: &Handle, deadline: Option<Instant>, n: u64) -> Duration {
    let mut permit = handle.try_reserve().unwrap();
    if let Some(deadline) = deadline {
        permit = permit.with_deadline(deadline);
    }
    let job = permit.spawn_cpu_with(move |job| {
        let start = Instant::now();
        for _ in 0..n {
            black_box(job.checkpoint())?;
        }
        Ok(start.elapsed())
    });
    job.wait().unwrap()
}

fn chunks_of(bytes: usize, n: u64) -> impl Stream<Item = Vec<u8>> + Send + 'static {
    let source = vec![7; bytes];
    stream::iter(0..n).map(move |_| black_box(&source).clone())
}

/// How long that takes, and how many bytes there are.
async fn read(chunks: impl Stream<Item = Vec<u8>>) -> (Duration, u64) {
    let mut chunks = std::pin::pin!(chunks);
    let start = Instant::now();
    let mut read = 0;
    while let Some(chunk) = chunks.next().await {
        read += black_box(chunk).len() as u64;
    }
    (start.elapsed(), read)
}
