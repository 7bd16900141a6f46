//! The ways to run the items of a stream on the CPU lane.

use std::fmt;
use std::sync::Arc;

use futures::{StreamExt, stream};
use rayon::iter::{IntoParallelIterator, ParallelBridge, ParallelIterator};
use tokio::sync::{Mutex, mpsc};
use tokio::task::spawn_blocking;
use twolane::{CpuIteratorExt, CpuStreamExt};
use twolane_benches::cores;

use crate::items::{Items, Kind};
use crate::lanes::{Lanes, Order, Taken};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Ordered,
    Unordered,
    Iterator,
    /// Ordered, with a window in bytes as well.
    Bytes,
    ThreeStages,
    /// One stage of three parts, for comparison.
    ThreeThirds,
    Blocking,
    BlockingUnordered,
    SpawnCpu,
    SpawnCpuUnordered,
    Workers,
    ParBridge,
}

impl Way {
    pub const ALL: [Self; 12] = [
        Self::Ordered,
        Self::Unordered,
        Self::Iterator,
        Self::Bytes,
        Self::ThreeStages,
        Self::ThreeThirds,
        Self::Blocking,
        Self::BlockingUnordered,
        Self::SpawnCpu,
        Self::SpawnCpuUnordered,
        Self::Workers,
        Self::ParBridge,
    ];

    /// The others are twolane's own; of these, `spawn_cpu` for each item is what a user
    /// of it would write without streams.
    pub fn peers() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().skip(6)
    }

    pub fn is_peer(self) -> bool {
        Self::peers().any(|peer| peer == self)
    }

    /// Whether the outputs come in the order of the source.
    pub fn is_ordered(self) -> bool {
        match self {
            Self::Ordered | Self::Iterator | Self::ThreeStages | Self::ThreeThirds => true,
            Self::Bytes | Self::Blocking | Self::SpawnCpu => true,
            Self::Unordered | Self::BlockingUnordered | Self::SpawnCpuUnordered => false,
            Self::Workers | Self::ParBridge => false,
        }
    }

    /// Runs all items this way.
    pub fn run(self, lanes: &Lanes, kind: Kind, items: Items) -> Taken {
        let source = 0..items.count;
        let f = move |item| items.compute(item);
        let third = move |item| items.compute_third(item);
        let room = kind.window();
        let jobs = kind.jobs_a_core() * cores();
        let cpu = lanes.cpu.handle();
        match self {
            Self::Ordered => lanes.consume(Order::Source, items, move || {
                let all = stream::iter(source).on_cpu(&cpu).map(f).buffered(room);
                all.map(Result::unwrap)
            }),
            Self::Unordered => lanes.consume(Order::Any, items, move || {
                let all = stream::iter(source).on_cpu(&cpu).map(f);
                all.buffer_unordered(room).map(Result::unwrap)
            }),
            Self::Iterator => lanes.consume(Order::Source, items, move || {
                let all = source.on_cpu(&cpu).map(f).buffered(room);
                all.map(Result::unwrap)
            }),
            Self::Bytes => lanes.consume(Order::Source, items, move || {
                let all = stream::iter(source).on_cpu(&cpu).map(f);
                let all = all.max_bytes(usize::MAX, |_| 8, |_| 8).buffered(room);
                all.map(Result::unwrap)
            }),
            Self::ThreeStages => lanes.consume(Order::Source, items, move || {
                let all = stream::iter(source).on_cpu(&cpu);
                let all = all.map(third).map(third).map(third).buffered(room);
                all.map(Result::unwrap)
            }),
            Self::ThreeThirds => lanes.consume(Order::Source, items, move || {
                let thirds = move |item| third(third(third(item)));
                let all = stream::iter(source).on_cpu(&cpu).map(thirds);
                all.buffered(room).map(Result::unwrap)
            }),
            Self::Blocking => lanes.consume(Order::Source, items, move || {
                let each = stream::iter(source).map(move |item| spawn_blocking(move || f(item)));
                each.buffered(jobs).map(Result::unwrap)
            }),
            Self::BlockingUnordered => lanes.consume(Order::Any, items, move || {
                let each = stream::iter(source).map(move |item| spawn_blocking(move || f(item)));
                each.buffer_unordered(jobs).map(Result::unwrap)
            }),
            Self::SpawnCpu => lanes.consume(Order::Source, items, move || {
                let each = stream::iter(source).map(move |item| cpu.spawn_cpu(move || f(item)));
                each.buffered(jobs).map(Result::unwrap)
            }),
            Self::SpawnCpuUnordered => lanes.consume(Order::Any, items, move || {
                let each = stream::iter(source).map(move |item| cpu.spawn_cpu(move || f(item)));
                each.buffer_unordered(jobs).map(Result::unwrap)
            }),
            Self::Workers => workers(lanes, items),
            Self::ParBridge => par_bridge(lanes, items),
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ordered => "twolane, ordered",
            Self::Unordered => "twolane, unordered",
            Self::Iterator => "twolane, of an Iterator",
            Self::Bytes => "twolane, max_bytes",
            Self::ThreeStages => "twolane, three stages",
            Self::ThreeThirds => "twolane, three thirds",
            Self::Blocking => "spawn_blocking, buffered",
            Self::BlockingUnordered => "spawn_blocking, unordered",
            Self::SpawnCpu => "spawn_cpu, buffered",
            Self::SpawnCpuUnordered => "spawn_cpu, unordered",
            Self::Workers => "mpsc + workers",
            Self::ParBridge => "par_bridge",
        })
    }
}

/// Of a channel: 1,024 is about as good, 16 and 128 are worse.
const ROOM: usize = 8_192;

/// Channels and a task for each core, on a second runtime.
fn workers(lanes: &Lanes, items: Items) -> Taken {
    /// What a worker takes out of the channel at once: one by one is worse.
    const MANY: usize = 64;
    let second = lanes.second.handle().clone();
    lanes.consume(Order::Any, items, move || {
        let (inputs, for_workers) = mpsc::channel(ROOM);
        let (outputs, mut for_consumer) = mpsc::channel(ROOM);
        tokio::spawn(async move {
            for item in 0..items.count {
                inputs.send(item).await.unwrap();
            }
        });
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
fn par_bridge(lanes: &Lanes, items: Items) -> Taken {
    let pool = lanes.pool.clone();
    lanes.consume(Order::Any, items, move || {
        let (inputs, mut for_pool) = mpsc::channel(ROOM);
        let (outputs, mut for_consumer) = mpsc::channel(ROOM);
        tokio::spawn(async move {
            for item in 0..items.count {
                inputs.send(item).await.unwrap();
            }
        });
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
