//! An I/O lane that runs only while it is told to: between two calls of
//! `until_idle`, nothing of it moves.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use tokio::runtime::{Builder, Runtime};
use twolane_core::CpuRuntime;

pub struct Stepped {
    pub cpu: CpuRuntime,
    pub io: Runtime,
}

impl Stepped {
    pub fn new() -> Self {
        Self::on(1)
    }

    pub fn on(threads: usize) -> Self {
        let io = Builder::new_current_thread().build().unwrap();
        let cpu = crate::support::cpu_lane(threads, io.handle());
        Self { cpu, io }
    }

    /// A task that wakes itself has its turn at each yield; one that has had
    /// none in a thousand of them sleeps.
    pub fn until_idle(&self) {
        self.io.block_on(async {
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
        });
    }
}

/// Reads on a thread that belongs to neither lane.
pub fn wait<F: Future>(future: F) -> F::Output {
    Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}
