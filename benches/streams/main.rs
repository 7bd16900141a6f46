//! Is a stream of items that compute ever slower on the CPU lane than in place? (S6)
//!
//! An always-ready source of numbered items, a stage that computes for 100 ns to 1 ms
//! for each, and a consumer that checks them. "mix" is 95 % of 10 µs and 5 % of 2 ms,
//! spread pseudo-randomly, always in the same way. What an item takes is calibrated as a
//! plain loop over such items has it, on an idle core.
//!
//! # The contenders
//!
//! - a plain loop: the 1 of all throughputs;
//! - twolane: `on_cpu(..).map(..)` with `buffered` and `buffer_unordered`, with an
//!   `Iterator` as the source, and with three stages of a third of the work each (and with one stage of the same
//!   three thirds: of short ones a core computes more at a time than of long ones);
//! - `buffered` and `buffer_unordered` of `futures`, over `tokio::task::spawn_blocking`
//!   and over twolane's `spawn_cpu`: a job an item;
//! - Tokio's channels and a task for each core, on a second runtime (unordered);
//! - rayon's `par_bridge` between two channels (unordered);
//! - `par-stream`: `par_map` and `par_map_unordered`;
//! - goroutines, in a process of their own: a loop; a pipeline of three goroutines, with
//!   and without room in its channels; fan-out and fan-in; a slice for each core;
//! - rayon's `par_iter` over a `Vec`: the limit, since it has all items before and hands
//!   nothing out before the end.
//!
//! Source and consumer of all in Rust are on one Tokio runtime of two workers, and each
//! pool has as many threads as there are cores; twolane's have its weights (`nice`). Its
//! window is 65,536 items for 100 ns and 1 µs, 4,096 for 10 µs and the mix, 1,024 for
//! 100 µs, 256 for 1 ms. The peers have the settings that were best of several: 32 jobs
//! for each core under way at 100 ns and 512 above, room for 8,192 items in a channel. All ways of one kind of item run the same number of
//! items, but of 100 ns and 1 µs the peers have a tenth: a job for each would take
//! seconds. All compare by time an item.
//!
//! # What else is measured
//!
//! - **first output**: from the start of a stream of 10 µs items to where the consumer has
//!   the first output, all threads asleep before;
//! - **memory**: by how much the resident set of a process grows at most while 64 KiB
//!   items, of which a stage makes others, go to a consumer ten times slower than the
//!   source, with a window of 16 MiB; and how much is in items at most. The peers
//!   have room for as many items. glibc's allocator keeps an arena for each thread, and in
//!   each of them what it does not give back, so the resident set is once that with one
//!   arena (the ratio) and once as it comes;
//! - **beside**: the latency of a TCP echo on the I/O runtime, asked every 2 ms (see
//!   `io_tail`), while streams of 10 µs items run. There `spawn_blocking` has its default
//!   of 512 threads.
//!
//! `over_best_rust_peer` compares twolane's ordered stream with the best of the peers,
//! ordered or not; the ratio is the worst of all kinds of items. Ratios of throughput: more
//! is better. `over_go_pipeline` is over the better of the two pipelines.
//!
//! # What it does not measure
//!
//! Items that touch memory: moving those to another core costs their cache as well. A
//! source that is slow, or that waits for I/O. More than one stream at a time. A machine
//! that is busy with something else: threads with twolane's weights then get less than the
//! peers', and the column `others` says how much others had.
//!
//! ```text
//! cargo bench --bench streams                          # four minutes
//! cargo bench --bench streams -- '100 ns/(plain|twol)'  # some rows
//! ```

mod beside;
mod contenders;
mod goroutines;
mod items;
mod lanes;
mod memory;
mod tables;
mod ways;

use std::cell::LazyCell;
use std::time::Duration;

use twolane_benches::go::Go;
use twolane_benches::{Bench, Contest, Report, child};

use crate::contenders::Bed;
use crate::items::Clock;
use crate::lanes::{Lanes, io_runtime};

fn main() {
    if let Some(role) = child::role() {
        memory::answer(&role);
    }
    let bench = Bench::new("streams");
    let bed = Bed {
        bench: &bench,
        clock: LazyCell::new(Clock::calibrated),
        lanes: LazyCell::new(|| Lanes::new(Box::leak(Box::new(io_runtime())).handle().clone())),
        go: Go::new("streams"),
    };
    let found = bench.run(Contest {
        contenders: contenders::all(&bed),
        rounds: bench.rounds([1, 1, 7, 9]),
        warm_up: false,
        ends_threads: false,
        bound: Duration::from_secs(120),
    });
    let Some(found) = found else { return };
    let mut report = Report::new(bench.name, &found);
    tables::print(&found, &mut report);
    report.finish();
}
