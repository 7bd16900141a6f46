//! The harness of all benches.
//!
//! A bench is a list of contenders. The harness runs them in alternation, round
//! by round, and turns what they measure into a table, into ratios and into
//! `target/twolane/BENCH.json`:
//!
//! - [`args`]: the command line, the same for every bench;
//! - [`contest`]: the rounds, with a progress bar and a watchdog;
//! - [`means`]: the same for benches whose answer is a mean, which criterion
//!   measures as well;
//! - [`findings`]: what the rounds measure; [`report`]: how it is printed;
//! - [`go`], [`child`]: contenders in a process of their own;
//! - [`tail`]: an echo server, its client and a CPU load, for the benches of the
//!   I/O lane's latency.
//!
//! `cargo bench` at the root runs them all with the features of twolane that any
//! member asks for, since Cargo unifies them. None of them makes a job slower, but for
//! `tracing`. The figures of the docs are of the default features and the long form:
//! `cargo bench -p twolane-benches -- --full`.

pub mod args;
pub mod child;
pub mod contest;
pub mod cpu_time;
pub mod findings;
pub mod go;
pub mod means;
pub mod others;
pub mod report;
pub mod tail;
pub mod threads;
pub mod watchdog;

pub use args::{Bench, Form};
pub use contest::{Contender, Contest};
pub use findings::{Findings, Ratio, Sample, median, quantile};
pub use report::{Column, Report};

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// `target/twolane`, made if need be.
pub fn folder() -> std::path::PathBuf {
    // The benches run in `target/PROFILE/deps`, wherever the target folder is.
    let program = std::env::current_exe().unwrap();
    let folder = program.ancestors().nth(3).unwrap().join("twolane");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
