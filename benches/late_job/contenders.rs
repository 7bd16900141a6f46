//! The contenders of Rust: what one would write without twolane, and twolane.

use std::sync::Arc;

use giveway::Weight;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::runtime::Handle as Tokio;
use tokio::sync::oneshot;

use twolane::{CpuRuntime, Priority};
use twolane_benches::{cores, lane};

use crate::arrivals::Ending;
use crate::fib::{SMALL, compute, compute_in_pieces};

/// A contender that is open for jobs. Boxed alike for all.
pub struct Contestant {
    /// Submits a long job, `fib(k)`.
    pub long: Box<dyn Fn(u32) -> Ending>,
    /// Submits a small one.
    pub late: Box<dyn Fn() -> Ending + Send>,
    /// Waits until its threads are gone; after the two above were dropped.
    pub close: Box<dyn FnOnce()>,
}

impl Contestant {
    /// Long jobs go to one place, small ones to another, the same way.
    fn new<P: Send + 'static>(
        [for_long, for_late]: [P; 2],
        submit: fn(&P, u32) -> Ending,
        close: impl FnOnce() + 'static,
    ) -> Self {
        Self {
            long: Box::new(move |k| submit(&for_long, k)),
            late: Box::new(move || submit(&for_late, SMALL)),
            close: Box::new(close),
        }
    }
}

/// The blocking pool of the I/O runtime itself, with the limit it has by default. It
/// ends with that runtime.
pub fn spawn_blocking(io: &Tokio) -> Contestant {
    let submit = |io: &Tokio, n| -> Ending {
        let job = io.spawn_blocking(move || compute(n));
        Box::pin(async move { job.await.unwrap() })
    };
    Contestant::new([io.clone(), io.clone()], submit, || ())
}

/// A rayon pool, and a oneshot for the result.
pub fn rayon_pool(_: &Tokio) -> Contestant {
    let pool = pool_at(0);
    on_pools([pool.clone(), pool])
}

/// One for the long jobs, and one for the small: priorities by hand.
pub fn two_pools(_: &Tokio) -> Contestant {
    on_pools([pool_at(16), pool_at(8)])
}

fn pool_at(nice: u8) -> Arc<ThreadPool> {
    giveway::start().unwrap();
    let pool = ThreadPoolBuilder::new().num_threads(cores());
    let pool = pool.start_handler(move |_| Weight::raised_by(nice).apply().unwrap());
    Arc::new(pool.build().unwrap())
}

fn on_pools(pools: [Arc<ThreadPool>; 2]) -> Contestant {
    let submit = |pool: &Arc<ThreadPool>, n| -> Ending {
        let (done, ended) = oneshot::channel();
        pool.spawn(move || done.send(compute(n)).unwrap());
        Box::pin(async move { ended.await.unwrap() })
    };
    // The harness waits until its threads are gone.
    Contestant::new(pools, submit, || ())
}

/// Tasks of a second runtime, one worker for each core.
pub fn second_runtime(_: &Tokio) -> Contestant {
    let runtime = twolane_benches::second_runtime();
    let submit = |runtime: &Tokio, n| -> Ending {
        let job = runtime.spawn(async move { compute(n) });
        Box::pin(async move { job.await.unwrap() })
    };
    let handle = runtime.handle().clone();
    Contestant::new([handle.clone(), handle], submit, move || drop(runtime))
}

/// Closures, all at the priority that one gets without asking. Two lines of the program submit
/// them, and so the lane can tell the small ones.
pub fn normal(io: &Tokio) -> Contestant {
    on_lane(lane(io, |lane| lane), Priority::Normal, closure)
}

/// Closures, the small ones at [`Priority::High`].
pub fn high(io: &Tokio) -> Contestant {
    on_lane(lane(io, |lane| lane), Priority::High, closure)
}

/// Futures of one priority.
pub fn futures(io: &Tokio) -> Contestant {
    on_lane(lane(io, |lane| lane), Priority::Normal, |handle, n| {
        let job = match n {
            SMALL => return small_future(handle),
            n => handle.spawn(compute_in_pieces(n)),
        };
        Box::pin(async move { job.await.unwrap() })
    })
}

fn on_lane(
    cpu: CpuRuntime,
    small: Priority,
    submit: fn(&twolane::Handle, u32) -> Ending,
) -> Contestant {
    let handles = [cpu.handle().clone(), cpu.handle().with_priority(small)];
    Contestant::new(handles, submit, move || {
        cpu.shutdown().wait();
    })
}

fn closure(handle: &twolane::Handle, n: u32) -> Ending {
    let job = match n {
        SMALL => handle.spawn_cpu(|| compute(SMALL)),
        n => handle.spawn_cpu(move || compute(n)),
    };
    Box::pin(async move { job.await.unwrap() })
}

pub fn small_future(handle: &twolane::Handle) -> Ending {
    let job = handle.spawn(async { compute(SMALL) });
    Box::pin(async move { job.await.unwrap() })
}
