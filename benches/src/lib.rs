//! The harness of all benches.
//!
//! A bench is a list of contenders. The harness runs them in alternation, round by round, and turns
//! what they measure into a table, into ratios and into `target/twolane/BENCH.json`:
//!
//! - [`args`]: the command line, the same for every bench;
//! - [`contest`]: the rounds, with a progress bar and a watchdog;
//! - [`findings`]: what the rounds measure; [`report`]: how it is printed;
//! - [`go`], [`child`]: contenders in a process of their own;
//! - [`tail`]: an echo server, its client and a CPU load, for the benches of the
//!   I/O lane's latency;
//! - [`cgroup`]: a CPU quota.
//!
//! `hop`, whose answers are means, is criterion's and has none of this. Its command line knows
//! `--quick`, `--test` and a filter as ours does; `--full`, `--rounds` and `--nice` go to another
//! bench by name.
//!
//! Plain `cargo bench` runs the nine benches of which none has `bench = false` in
//! `Cargo.toml`. The others run by name: `cargo bench --bench small_work`, or all of them with
//! `--bench '*'` (`cargo clippy --all-targets` leaves them out, too). The library is built with
//! the same features with and without `-p twolane-benches` (`.ci/bench-features`).

pub mod args;
pub mod cgroup;
pub mod child;
pub mod contest;
pub mod cpu_time;
pub mod findings;
pub mod go;
pub mod others;
pub mod report;
pub mod tail;
pub mod threads;
pub mod watchdog;

use tokio::runtime::Runtime;
use twolane::{Builder, CpuRuntime};

pub use args::{Bench, Form};
pub use contest::{BoxError, Contender, Contest, not_here};
pub use findings::{Findings, Ratio, Sample, median, quantile};
pub use report::{Column, Report};

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// An I/O runtime with so many workers.
pub fn io_runtime(workers: usize) -> Runtime {
    // Tokio's default.
    runtime(workers, 512)
}

/// The same with a blocking pool of as many threads as there are cores.
pub fn bounded_runtime(workers: usize) -> Runtime {
    runtime(workers, cores())
}

fn runtime(workers: usize, blocking: usize) -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(workers).enable_all();
    builder.max_blocking_threads(blocking).build().unwrap()
}

/// An I/O runtime of the current thread.
pub fn current_thread_runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

/// A second runtime that computes: a worker for each core, without drivers.
pub fn second_runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(cores()).build().unwrap()
}

/// twolane's lane beside it, with these settings.
pub fn lane(io: &tokio::runtime::Handle, set: impl FnOnce(Builder) -> Builder) -> CpuRuntime {
    let builder = CpuRuntime::builder().io_handle(io.clone());
    set(builder).build().unwrap()
}

/// `target/twolane`, made if need be.
pub fn folder() -> std::path::PathBuf {
    // The benches run in `target/PROFILE/deps`, wherever the target folder is.
    let program = std::env::current_exe().unwrap();
    let folder = program.ancestors().nth(3).unwrap().join("twolane");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
