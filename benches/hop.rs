//! What does a job pay for its hops to the I/O lane, and for its streams from there?
//!
//! - **spawn_io**: from inside a job, a future of nothing on the I/O lane, and back, one
//!   after the other.
//! - **bridge**: a job reads a stream of chunks from the I/O lane, for several sizes of
//!   chunk. The stream copies each chunk, as a socket's would be, and always has the
//!   next one. By `stream_from_io` with a limit of 1 MiB; by a task of the I/O runtime
//!   and Tokio's `mpsc` with room for as much, by hand; and *in place*: the job polls
//!   the stream itself, and nothing crosses.
//!
//! All are means, and so criterion's alone, with its command line, baselines and statistics.
//! A round trip beside its peers: `offload`. A switch and `yield_if_due`: `switch`. It does not
//! measure a network.
//!
//! ```text
//! cargo bench --bench hop              # half a minute
//! cargo bench --bench hop -- bridge    # the bridge alone
//! ```

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures::{Stream, StreamExt, stream};
use tokio::runtime::Runtime;
use twolane::{CpuRuntime, Handle, Task};
use twolane_benches::{io_runtime, lane};

/// What the bridge may buffer.
const LIMIT: usize = 1 << 20;

criterion_group! {
    name = hop;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = spawn_io, bridge
}
criterion_main!(hop);

fn open() -> (Runtime, CpuRuntime) {
    let io = io_runtime(2);
    let cpu = lane(io.handle(), |lane| lane);
    (io, cpu)
}

fn spawn_io(criterion: &mut Criterion) {
    let (_io, cpu) = open();
    let hops = |n| {
        let job = cpu.spawn(async move {
            let start = Instant::now();
            for _ in 0..n {
                twolane::spawn_io(async { black_box(1) }).await.unwrap();
            }
            start.elapsed()
        });
        job.wait().unwrap()
    };
    criterion.bench_function("spawn_io", |bencher| bencher.iter_custom(hops));
}

fn bridge(criterion: &mut Criterion) {
    let (io, cpu) = open();
    let mut group = criterion.benchmark_group("bridge");
    for bytes in [1 << 10, 16 << 10, 256 << 10] {
        group.throughput(Throughput::Bytes(bytes as u64));
        for way in ["stream_from_io", "mpsc by hand", "in place"] {
            let chunks = |n| {
                let job = read_by(way, &io, cpu.handle(), bytes, n);
                let (took, read) = job.wait().unwrap();
                assert_eq!(read, n * bytes as u64);
                took
            };
            let id = BenchmarkId::new(way, format!("{} KiB", bytes >> 10));
            group.bench_function(id, |bencher| bencher.iter_custom(chunks));
        }
    }
}

fn read_by(way: &str, io: &Runtime, cpu: &Handle, bytes: usize, n: u64) -> Task<(Duration, u64)> {
    let source = vec![7_u8; bytes];
    let chunks = stream::iter(0..n).map(move |_| black_box(&source).clone());
    match way {
        "stream_from_io" => {
            let bridged = cpu.stream_from_io(chunks, LIMIT, Vec::len);
            cpu.spawn(read(bridged.map(Result::unwrap)))
        }
        "mpsc by hand" => {
            let (send, mut receive) = tokio::sync::mpsc::channel(LIMIT / bytes);
            io.spawn(async move {
                let mut chunks = std::pin::pin!(chunks);
                while let Some(chunk) = chunks.next().await {
                    send.send(chunk).await.unwrap();
                }
            });
            cpu.spawn(read(stream::poll_fn(move |cx| receive.poll_recv(cx))))
        }
        _ => cpu.spawn(read(chunks)),
    }
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
