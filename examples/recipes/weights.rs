//! Several Tokio runtimes, each with a weight: a program that does I/O on all of them, and cannot move
//! its work to a lane yet.
//!
//! For databases whose queries and compactions read and write where they compute. `giveway` gives the
//! threads of a runtime a nice value, in its start hook. Then the kernel takes a core from a compaction
//! when a thread of the service wakes up. It is no lane: nothing is limited, cancelled or counted, and a
//! client that two of the runtimes share stalls as before. Copy [`runtime`].
//!
//! **Who starts a thread matters.** It inherits the nice value of the thread that starts it, and no hook
//! can lower that. The workers start in `build`: call it on a thread that is not niced. Tokio starts the
//! threads of `spawn_blocking` on the thread that calls it, so a compaction should not call that of the
//! service's runtime.
//!
//! ```text
//! cargo run --release -p examples --example weights
//! ```
//!
//! To copy it: `cargo add giveway` and `cargo add tokio -F full`.

use std::io;

use giveway::Weight;
use tokio::runtime::{Builder, Runtime};

fn main() -> io::Result<()> {
    let runtimes = Runtimes::start()?;
    let compaction = runtimes
        .compaction
        .spawn(async { (1..=1_000_000_u64).sum::<u64>() });
    let sum = runtimes.service.block_on(compaction)?;
    println!("{sum}, while the service answered first");
    Ok(())
}

/// Those of a database.
pub struct Runtimes {
    pub service: Runtime,
    pub queries: Runtime,
    pub compaction: Runtime,
}

impl Runtimes {
    /// Call it first in `main`.
    pub fn start() -> io::Result<Self> {
        // It notes the process's own nice value, which the others count from.
        giveway::start()?;
        Ok(Self {
            service: runtime("service", Weight::raised_by(0))?,
            queries: runtime("queries", Weight::raised_by(8))?,
            compaction: runtime("compaction", Weight::raised_by(16))?,
        })
    }
}

/// With sockets and timers, as `#[tokio::main]` has them.
pub fn runtime(name: &str, weight: Weight) -> io::Result<Runtime> {
    let label = name.to_owned();
    Builder::new_multi_thread()
        .enable_all()
        .thread_name(name)
        .on_thread_start(move || {
            if let Err(refused) = weight.apply() {
                eprintln!("a thread of {label} has no weight: {refused}");
            }
        })
        // Short jobs that come and go: while they do, the process ticks, so that the kernel looks often.
        .on_thread_unpark(giveway::note_activity)
        .build()
}
