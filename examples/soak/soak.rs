//! The soak: rounds of random jobs on fresh lanes, and a ledger of its own to check
//! the lanes' counters. `main.rs` is its command line, `examples/tests/soak.rs` a short run of it.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each program uses a part of it, and none is a library"
)]

pub mod captures;
pub mod check;
pub mod ending;
pub mod held;
pub mod jobs;
pub mod kinds;
pub mod ledger;
pub mod panics;
pub mod plan;
pub mod process;
pub mod round;
pub mod submit;
pub mod submitter;
pub mod tally;
pub mod watchdog;

use std::sync::Arc;
use std::time::Duration;

use twolane::Backend;

use panics::Unplanned;
use process::Process;
use tally::Tally;
use watchdog::Watchdog;

/// The seed is `TWOLANE_SEED`, or another one each time.
pub fn seed_of_environment() -> u64 {
    match std::env::var("TWOLANE_SEED") {
        Ok(seed) => seed.parse().expect("TWOLANE_SEED is a number"),
        Err(_) => fastrand::u64(..),
    }
}

/// What is the same in all rounds.
pub struct Soak {
    pub seed: u64,
    /// Chosen from, each round.
    pub backends: Vec<Backend>,
    /// Jobs of a round: at least, at most.
    pub jobs_per_round: (u32, u32),
    /// The I/O runtime of most rounds, which outlives them.
    pub io: tokio::runtime::Runtime,
    pub watchdog: Arc<Watchdog>,
    unplanned: Unplanned,
    process: Process,
    rounds: u64,
    jobs: u64,
    pub tally: Tally,
}

impl Soak {
    pub fn new(seed: u64, backends: Vec<Backend>, jobs_per_round: (u32, u32)) -> Self {
        let io = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("soak-io")
            // A round waits until the threads that it caused have ended. A job's
            // `spawn_blocking` or `block_in_place` causes them in this runtime's pool.
            .thread_keep_alive(Duration::from_millis(1))
            .enable_all()
            .build()
            .expect("an I/O runtime");
        let unplanned = Unplanned::install_hook();
        let watchdog = Watchdog::start(Duration::from_secs(30));
        Self {
            seed,
            backends,
            jobs_per_round,
            io,
            watchdog,
            unplanned,
            process: Process::default(),
            rounds: 0,
            jobs: 0,
            tally: Tally::default(),
        }
    }

    /// One round, to its end. Panics where a check fails.
    pub fn round(&mut self) {
        let (tally, failures) = round::run(self, self.rounds);
        self.rounds += 1;
        self.jobs += tally.jobs();
        self.tally.add(&tally);
        let failures = [failures, self.unplanned.take()].concat();
        assert!(
            failures.is_empty(),
            "TWOLANE_SEED={} round {}: {} checks failed\n{}",
            self.seed,
            self.rounds - 1,
            failures.len(),
            failures[..failures.len().min(20)].join("\n")
        );
    }

    pub fn jobs(&self) -> u64 {
        self.jobs
    }

    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// The memory that a tenth of the rounds has left behind is what all are
    /// compared with: by then every pool and cache there is has been filled.
    pub fn note_memory_of_a_tenth(&mut self) {
        self.process.note_resident();
    }

    /// What the process held then and holds now, in KiB. Panics if that grew.
    pub fn check_memory(&self) -> (u64, u64) {
        self.process.check_resident()
    }
}
