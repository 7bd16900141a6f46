//! The recipes of the example `streams`: each does what it says, also when things go wrong.

mod consumer;
mod download;
mod fan;
mod pipeline;
mod pool;
#[path = "../../streams"]
mod recipes {
    pub(super) mod consumer;
    pub(super) mod download;
    pub(super) mod fan;
    pub(super) mod pipeline;
    pub(super) mod pool;
}

use twolane::Handle;

use crate::Error;
use crate::support::lanes;

const THREADS: usize = 2;

/// On an I/O lane whose threads are named `io`.
fn with_cpu(test: impl AsyncFn(&Handle)) {
    let lanes = lanes(THREADS);
    lanes.io.block_on(test(lanes.cpu.handle()));
}
