//! The recipes of the example `streams`: each does what it says, also when things go wrong.

#[path = "../../streams"]
mod recipes {
    pub mod consumer;
    pub mod download;
    pub mod fan;
    pub mod pipeline;
    pub mod pool;
}
#[path = "../../../tests/support/mod.rs"]
mod support;

mod consumer;
mod download;
mod fan;
mod pipeline;
mod pool;

use support::{BOTH, lanes, time_limit};
use twolane::Handle;

type Error = Box<dyn std::error::Error + Send + Sync>;

const THREADS: usize = 2;

/// On each backend, with a time limit, on an I/O lane whose threads are named `io`.
fn with_cpu(test: impl AsyncFn(&Handle)) {
    for backend in BOTH {
        let _limit = time_limit();
        let lanes = lanes(backend, THREADS);
        lanes.io.block_on(test(&lanes.cpu.handle()));
    }
}
