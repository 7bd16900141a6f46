//! The threads of the contenders, and the consumer of all those that are streams.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt};
use rayon::ThreadPool;
use tokio::runtime::{Handle, Runtime};
use twolane::CpuRuntime;
use twolane_benches::{Sample, cores, lane, second_runtime};

use crate::items::Items;

/// As many threads as there are cores for each contender.
pub struct Lanes {
    pub io: Handle,
    pub cpu: CpuRuntime,
    pub second: Runtime,
    pub pool: Arc<ThreadPool>,
}

impl Lanes {
    pub fn new(io: Handle) -> Self {
        let cpu = lane(&io, |lane| lane);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(cores());
        Self {
            io,
            cpu,
            second: second_runtime(),
            pool: Arc::new(pool.build().unwrap()),
        }
    }

    /// A task of the I/O runtime opens the stream and takes all of it.
    pub fn consume<S>(
        &self,
        order: Order,
        items: Items,
        open: impl FnOnce() -> S + Send + 'static,
    ) -> Taken
    where
        S: Stream<Item = u64> + Send,
    {
        let start = Instant::now();
        let consumer = self.io.spawn(async move {
            let mut stream = pin!(open());
            let (mut count, mut sum, mut first) = (0, 0, Duration::ZERO);
            while let Some(item) = stream.next().await {
                if count == 0 {
                    first = start.elapsed();
                }
                if order == Order::Source {
                    assert_eq!(item, count, "out of order");
                }
                count += 1;
                sum += item;
            }
            items.check(sum);
            let all = start.elapsed();
            Taken { all, first }
        });
        self.io.block_on(consumer).unwrap()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Source,
    Any,
}

/// How long after its start the consumer has taken them.
#[derive(Clone, Copy)]
pub struct Taken {
    pub all: Duration,
    pub first: Duration,
}

/// The metric of all that compare by throughput.
pub const RATE: &str = "items_per_s";

pub fn rate(items: u64, took: Duration) -> Sample {
    let mut sample = Sample::of(RATE, "1/s", items as f64 / took.as_secs_f64());
    sample.put("each", "ns", took.as_nanos() as f64 / items as f64);
    sample
}
