//! The ways to run the items of a stream on the CPU lane.

use std::sync::Arc;

use futures::{StreamExt, stream};
use rayon::iter::{IntoParallelIterator, ParallelBridge, ParallelIterator};
use tokio::sync::{Mutex, mpsc};
use tokio::task::spawn_blocking;
use twolane::{CpuIteratorExt, CpuStreamExt};
use twolane_benches::cores;

use crate::items::{Items, Kind};
use crate::lanes::{Lanes, Order, Taken};

/// Runs all items this way.
pub type Run = fn(&Lanes, Kind, Items) -> Taken;

pub const ORDERED: &str = "twolane, ordered";
pub const UNORDERED: &str = "twolane, unordered";
pub const OF_ITERATOR: &str = "twolane, of an Iterator";
pub const BLOCKING: &str = "spawn_blocking, buffered";
pub const CHUNKS: &str = "chunks, spawn_blocking, buffered";
pub const WORKERS: &str = "mpsc + workers";

/// twolane's own.
pub const OURS: [(&str, Run); 3] = [
    (ORDERED, |lanes, kind, items| {
        let cpu = lanes.cpu.handle().clone();
        lanes.consume(Order::Source, items, move || {
            let all = stream::iter(0..items.count).on_cpu(&cpu);
            let all = all.map(move |item| items.compute(item));
            all.buffered(kind.window()).map(Result::unwrap)
        })
    }),
    (UNORDERED, |lanes, kind, items| {
        let cpu = lanes.cpu.handle().clone();
        lanes.consume(Order::Any, items, move || {
            let all = stream::iter(0..items.count).on_cpu(&cpu);
            let all = all.map(move |item| items.compute(item));
            all.buffer_unordered(kind.window()).map(Result::unwrap)
        })
    }),
    (OF_ITERATOR, |lanes, kind, items| {
        let cpu = lanes.cpu.handle().clone();
        lanes.consume(Order::Source, items, move || {
            let all = (0..items.count).on_cpu(&cpu);
            let all = all.map(move |item| items.compute(item));
            all.buffered(kind.window()).map(Result::unwrap)
        })
    }),
];

/// The others, the ordered first; of these, `spawn_cpu` for each item is what a user of
/// twolane would write without streams.
pub const PEERS: [(&str, Run); 5] = [
    (BLOCKING, |lanes, kind, items| {
        lanes.consume(Order::Source, items, move || {
            let each = stream::iter(0..items.count);
            let each = each.map(move |item| spawn_blocking(move || items.compute(item)));
            each.buffered(kind.jobs()).map(Result::unwrap)
        })
    }),
    ("spawn_cpu, buffered", |lanes, kind, items| {
        let cpu = lanes.cpu.handle().clone();
        lanes.consume(Order::Source, items, move || {
            let each = stream::iter(0..items.count);
            let each = each.map(move |item| cpu.spawn_cpu(move || items.compute(item)));
            each.buffered(kind.jobs()).map(Result::unwrap)
        })
    }),
    (CHUNKS, |lanes, kind, items| {
        lanes.consume(Order::Source, items, move || {
            let chunks = stream::iter(0..items.count).chunks(kind.chunk());
            let each = chunks.map(move |chunk: Vec<u64>| {
                let compute = move |item| items.compute(item);
                spawn_blocking(move || chunk.into_iter().map(compute).collect::<Vec<u64>>())
            });
            let outputs = each.buffered(4 * cores());
            outputs.flat_map(|chunk| stream::iter(chunk.unwrap()))
        })
    }),
    (WORKERS, workers),
    ("par_bridge", par_bridge),
];
/// So many of the peers have their outputs in the order of the source.
pub const ORDERED_PEERS: usize = 3;

pub fn all() -> impl Iterator<Item = (&'static str, Run)> {
    OURS.into_iter().chain(PEERS)
}

/// Of a channel: 1,024 is about as good, 16 and 128 are worse.
const ROOM: usize = 8_192;

/// A task that sends all items.
fn source(items: Items) -> mpsc::Receiver<u64> {
    let (inputs, source) = mpsc::channel(ROOM);
    tokio::spawn(async move {
        for item in 0..items.count {
            inputs.send(item).await.unwrap();
        }
    });
    source
}

/// Channels and a task for each core, on a second runtime.
fn workers(lanes: &Lanes, _: Kind, items: Items) -> Taken {
    /// What a worker takes out of the channel at once: one by one is worse.
    const MANY: usize = 64;
    let second = lanes.second.handle().clone();
    lanes.consume(Order::Any, items, move || {
        let for_workers = source(items);
        let (outputs, mut for_consumer) = mpsc::channel(ROOM);
        let for_workers = Arc::new(Mutex::new(for_workers));
        for _ in 0..cores() {
            let (inputs, outputs) = (for_workers.clone(), outputs.clone());
            second.spawn(async move {
                let mut taken = Vec::with_capacity(MANY);
                while inputs.lock().await.recv_many(&mut taken, MANY).await > 0 {
                    for item in taken.drain(..) {
                        outputs.send(items.compute(item)).await.unwrap();
                    }
                }
            });
        }
        stream::poll_fn(move |cx| for_consumer.poll_recv(cx))
    })
}

/// A job of a rayon pool that takes its items out of a channel.
fn par_bridge(lanes: &Lanes, _: Kind, items: Items) -> Taken {
    let pool = lanes.pool.clone();
    lanes.consume(Order::Any, items, move || {
        let mut for_pool = source(items);
        let (outputs, mut for_consumer) = mpsc::channel(ROOM);
        pool.spawn(move || {
            let source = std::iter::from_fn(move || for_pool.blocking_recv());
            source.par_bridge().for_each(|item| {
                outputs.blocking_send(items.compute(item)).unwrap();
            });
        });
        stream::poll_fn(move |cx| for_consumer.poll_recv(cx))
    })
}

/// The limit: all items are there, and nothing is handed out before the end.
pub fn par_iter(lanes: &Lanes, items: Items) {
    let all: Vec<u64> = (0..items.count).collect();
    let sum = lanes.pool.install(|| {
        let all = all.into_par_iter();
        all.map(|item| items.compute(item)).sum::<u64>()
    });
    items.check(sum);
}
