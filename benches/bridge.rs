//! What a stream pays for leaving the CPU lane in small chunks.
//!
//! A source that computes its chunks, always ready: each 4 KiB take 15 µs (zstd) or 120 µs (gzip).
//! The reader, on the I/O lane, does nothing with them. How long does it take for 64 MiB, or 16?
//!
//! - `in place`: the loop on the thread of the reader, the 1 of all ratios;
//! - `4 KiB`: [`stream_from_cpu`](twolane::Handle::stream_from_cpu), as `ReaderStream::new` cuts;
//! - `64 KiB`: the same of larger chunks, as the recipes cut.
//!
//! *trickle*: a source that has a chunk every 2 ms. From the chunk to the reader, in µs.
//!
//! ```text
//! cargo bench -p twolane-benches --bench bridge
//! ```

use std::cell::LazyCell;
use std::pin::pin;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt, stream};
use tokio::runtime::Runtime;
use twolane_benches::findings::empty_histogram;
use twolane_benches::tail::work::Work;
use twolane_benches::{Bench, Column, Contender, Contest, Sample, lane};

const WINDOW: usize = 256 << 10;
const SMALL: usize = 4 << 10;
const LARGE: usize = 64 << 10;

fn main() -> ExitCode {
    let bench = Bench::new("bridge");
    let work = [15, 120].map(|us| (us, LazyCell::new(move || calibrated(us))));
    let factor = bench.pick([1, 16, 64, 64]);
    let runtime = Runtime::new().unwrap();
    let cpu = lane(runtime.handle(), |lane| lane);
    let (runtime, cpu) = (&runtime, &cpu);
    let mut contenders = Vec::new();
    for (us, work) in &work {
        // As much as takes about as long.
        let bytes = factor * (1 << 20) * 15 / *us as usize;
        for (way, chunk) in [("in place", SMALL), ("4 KiB", SMALL), ("64 KiB", LARGE)] {
            let turn = move || {
                let work = work.times((chunk / SMALL) as f64);
                let chunks = stream::iter(0..bytes / chunk).map(move |_| {
                    work.run();
                    vec![0_u8; chunk]
                });
                let begun = Instant::now();
                let read = runtime.block_on(async {
                    match way {
                        "in place" => drain(chunks).await,
                        _ => {
                            let bridged = cpu.handle().stream_from_cpu(chunks, WINDOW, Vec::len);
                            drain(bridged.map(Result::unwrap)).await
                        }
                    }
                });
                let took = begun.elapsed().as_secs_f64() * 1e6;
                assert_eq!(read, bytes / chunk * chunk);
                let of_4_kib = (read / SMALL) as f64;
                Ok(Sample::of("of_4_kib", "µs", took / of_4_kib))
            };
            contenders.push(Contender::new(format!("{us} µs, {way}"), turn));
        }
    }
    let items = bench.pick([20, 200, 1_000, 2_000]);
    contenders.push(Contender::new("trickle", move || {
        let every = tokio::time::Duration::from_millis(2);
        let chunks = stream::unfold((), move |()| async move {
            twolane::spawn_io(tokio::time::sleep(every)).await.ok()?;
            Some((Instant::now(), ()))
        });
        let bridged = cpu
            .handle()
            .stream_from_cpu(chunks.take(items), WINDOW, |_| SMALL);
        let mut latencies = empty_histogram();
        runtime.block_on(bridged.for_each(|made| {
            let took = made.unwrap().elapsed();
            latencies.saturating_record(took.as_nanos() as u64);
            std::future::ready(())
        }));
        let mut sample = Sample::default();
        sample.put_latencies("trickle", latencies);
        Ok(sample)
    }));
    let contest = Contest::new(&bench, contenders, [1, 5, 11, 21], Duration::from_secs(60));
    contest.report(|report| {
        report.table(
            "µs for 4 KiB; of a trickle, ms",
            "",
            &[
                Column::spread("each", "of_4_kib"),
                Column::pooled("trickle p50", "trickle", 0.5),
                Column::pooled("p99", "trickle", 0.99),
            ],
        );
        for us in [15, 120] {
            for way in ["4 KiB", "64 KiB"] {
                let (over, under) = (format!("{us} µs, {way}"), format!("{us} µs, in place"));
                let name = format!("{us}_us_{}_over_in_place", way.replace(' ', "_"));
                report.ratio(name, "of_4_kib", &over, &under);
            }
        }
    })
}

fn calibrated(us: u64) -> Work {
    Work::calibrated(Duration::from_micros(us))
}

async fn drain(chunks: impl Stream<Item = Vec<u8>>) -> usize {
    let mut chunks = pin!(chunks);
    let mut read = 0;
    while let Some(chunk) = chunks.next().await {
        read += chunk.len();
    }
    read
}
