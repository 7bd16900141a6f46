//! What does it cost to offload one job, or many?
//!
//! Decides how small a piece of work is worth moving (`small_work` says from what size on it is).
//! All jobs here do nothing to speak of, so that what is left is the way there and back.
//!
//! # The contenders
//!
//! All submit from a task of one Tokio runtime with two workers, and each has
//! as many threads of its own as there are cores:
//!
//! - twolane: `spawn_cpu` (a closure) and `spawn` (a future);
//! - `tokio::task::spawn_blocking`; a task of a second runtime;
//! - `tokio_rayon`; rayon and a Tokio oneshot by hand; rayon and `async-task`;
//! - `tokio::spawn`, which offloads nothing: it stays on the runtime that is to be kept free. It
//!   shows what a task costs, and is a peer in the batches only;
//! - twolane at its High priority, cold and busy; and without the weights of its threads;
//! - goroutines, in a process of their own: a goroutine for each job, its
//!   result through a channel. They have ratios of their own.
//!
//! # What is measured
//!
//! - **hot**: one job after the other, each awaited: the mean of some thousand.
//! - **cold**: the same with a gap of 1 ms before each (`tokio::time::sleep`, in fact 1 to 2 ms),
//!   in which all threads fall asleep: the median, as one trip that the kernel interrupts would
//!   outweigh a hundred. The row "nothing, the gap alone" is the CPU time of the gaps themselves.
//! - **busy**: the same, with a gap, in a lane where four times as many jobs of 50 µs are in flight
//!   as it has threads, or sixteen times as many of 5 µs: the median, and beside it how much of the
//!   lane's time that load had. "High" is a job of that priority in a lane whose load is Normal.
//!   (`spawn_blocking` is limited to as many threads as the others have. A goroutine has no queue to
//!   wait in: it runs where it is made.)
//! - **batch**: 50,000 jobs submitted and then awaited, from one task: nanoseconds a job.
//! - **allocations and bytes** a job, in the batch of 50,000 (without the `Vec` of its tasks).
//! - Beside each latency **the CPU time** of the whole process, a job.
//!
//! "Best peer" is the one with the best median of all rounds.
//!
//! # What it does not measure
//!
//! Jobs that compute (`late_job`, `small_work`), a million at once (`million`),
//! futures that are woken and polled again (`switch`).
//!
//! ```text
//! cargo bench --bench offload                    # 80 seconds
//! cargo bench --bench offload -- 'twolane|tokio_rayon'
//! ```

mod contenders;
mod measure;
mod ways;

use std::process::ExitCode;
use std::time::Duration;

use twolane_benches::{Bench, Column, Contest, Ratio};

use crate::contenders::GOROUTINES;
use crate::ways::{HIGH, TOKIO_SPAWN, UNWEIGHTED};

#[global_allocator]
static ALLOCATOR: alloc_tracker::Allocator<std::alloc::System> = alloc_tracker::Allocator::system();

/// In the order of the ratios' suffixes.
const OURS: [(&str, &str); 4] = [
    ("twolane spawn_cpu", ""),
    ("twolane spawn", "_future"),
    (UNWEIGHTED, "_unweighted"),
    (HIGH, "_high"),
];
/// Those that keep their jobs off the runtime that submits; and, a peer in the
/// batches, the one that does not.
const PEERS: [&str; 6] = [
    "tokio_rayon",
    "rayon + oneshot",
    "rayon + async-task",
    "spawn_blocking",
    "second runtime",
    TOKIO_SPAWN,
];

fn main() -> ExitCode {
    let bench = Bench::new("offload");
    let contest = Contest::new(
        &bench,
        contenders::all(bench.pick([1_000, 10, 1, 1])),
        [1, 1, 4, 11],
        Duration::from_secs(120),
    )
    .warming_up();
    contest.report(|report| {
        report.table(
            "round trip, ns; cpu: ns of CPU time a trip",
            "",
            &[
                Column::spread("hot", "hot"),
                Column::median("cpu", "hot_cpu"),
                Column::spread("cold, p50", "cold"),
                Column::median("p99", "cold_p99"),
                Column::median("cpu", "cold_cpu"),
            ],
        );
        report.table(
            "round trip in a busy lane, ns; load: the part of the lane's time that others used",
            "",
            &[
                Column::spread("50 us, p50", "busy"),
                Column::median("p99", "busy_p99"),
                Column::median("load", "busy_load"),
                Column::spread("5 us, p50", "busy_short"),
                Column::median("p99", "busy_short_p99"),
                Column::median("load", "busy_short_load"),
            ],
        );
        report.table(
            "batch, ns a job; allocations and bytes a job",
            "",
            &[
                Column::spread("50,000", "batch"),
                Column::median("cpu", "batch_cpu"),
                Column::median("allocations", "allocations_batch"),
                Column::median("bytes", "bytes_batch"),
            ],
        );
        let offloading = &PEERS[..5];
        let wanted: [(&str, &str, &[&str]); 8] = [
            ("roundtrip_over_best_peer_hot", "hot", offloading),
            ("roundtrip_over_best_peer_cold", "cold", offloading),
            ("roundtrip_cpu_over_best_peer_hot", "hot_cpu", offloading),
            ("roundtrip_cpu_over_best_peer_cold", "cold_cpu", offloading),
            ("roundtrip_busy_over_best_peer", "busy", offloading),
            (
                "roundtrip_busy_short_over_best_peer",
                "busy_short",
                offloading,
            ),
            ("batch_over_best_peer", "batch", &PEERS),
            ("batch_over_go", "batch", &[GOROUTINES]),
        ];
        for (name, metric, peers) in wanted {
            for (ours, suffix) in OURS {
                let ratio = report.found.over_least(metric, ours, peers);
                report.put(format!("{name}{suffix}"), ratio);
            }
        }
        let allocations = report.found.median(OURS[0].0, "allocations_batch");
        report.put("allocs_per_job", Ratio::once(allocations));
    })
}
