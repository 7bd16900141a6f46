//! A small job arrives while the CPU lane has long ones queued: when is it
//! answered, and what does that cost the long ones? (S3)
//!
//! N long jobs, `fib(k)` by naive recursion, are all submitted at the start; when about a quarter
//! of the time is over, small jobs, `fib(15)` (some microseconds), arrive one by one. Pools that
//! run to completion answer them late; a preemptive scheduler answers soon, at the price of the
//! total. Here are both, and what twolane makes of it.
//!
//! # The contenders
//!
//! Each is a process's only load while it runs, with the same k and N:
//!
//! - goroutines, in a process of their own, `GOMAXPROCS` as it comes;
//! - `tokio::task::spawn_blocking` with its default limit of 512 threads (there are
//!   more long jobs than that, or the limit would play no part);
//! - a rayon pool and a oneshot by hand;
//! - two of these, at nice 16 for the long jobs and at nice 8 for the small ones;
//! - tasks of a second Tokio runtime;
//! - twolane, small and long jobs alike: `spawn_cpu`, from two lines of the program;
//! - twolane, the small ones by `with_priority(Priority::High)`;
//! - twolane, all of them futures of one priority; the long ones await `yield_if_due()` after each
//!   piece of some tens of microseconds.
//!
//! And apart from these: 200 long futures that have all been polled before the first small one
//! arrives, and go on computing with `yield_if_due()` until the last small one is answered. That is
//! the harder case: nothing long is merely queued, and what gives way comes back for more.
//!
//! And again goroutines, and twolane with the small ones High, with *sparse* small jobs, each 25 ms
//! instead of each 10. Go's answer depends on that: of two arrivals that one turn of the source
//! finds due (each 10 to 20 ms), the second takes the place as the next to run, and the first waits
//! behind long ones, for seconds. Neither alone would be a fair picture.
//!
//! # What is counted
//!
//! *Total*: from the start to the end of the last long job. Latency of a small job: **from the time
//! at which it is meant to arrive**, as a client would see it, to its end, as it notes it itself. A
//! source that is late counts: in Go it is a goroutine, and when all processors compute it waits as
//! any other. In Rust it is a plain thread that sleeps until each arrival. A task of the I/O runtime
//! awaits each job.
//!
//! # What it does not measure
//!
//! Small jobs that come in numbers; jobs with memory to speak of; a lane with I/O to serve
//! meanwhile. How Go and Rust compute: totals compare only within Rust.
//!
//! Afterwards it runs `mixed_load` (`mixed/mod.rs`): jobs of all lengths, by how much slower than
//! alone they are.
//!
//! ```text
//! cargo bench --bench late_job                # 160 seconds on two cores; --full: twenty minutes
//! cargo bench --bench late_job -- 'late_job/.*(rayon|High)' --rounds 3
//! cargo bench --bench late_job -- mixed_load  # that alone
//! ```

mod arrivals;
mod contenders;
mod fib;
mod mixed;
mod run;

use std::process::ExitCode;
use std::time::Duration;

use tokio::runtime::Handle;
use twolane_benches::go::Go;
use twolane_benches::{Bench, Column, Contender, Contest, cores};

use crate::contenders::Contestant;
use crate::fib::SMALL;
use crate::run::{BOUND, Plan, in_go, queued, sample, started_futures};

fn main() -> ExitCode {
    let codes = [
        late(&Bench::new("late_job")),
        mixed::run(&Bench::new("mixed_load")),
    ];
    let failed = codes.into_iter().find(|code| *code != ExitCode::SUCCESS);
    failed.unwrap_or(ExitCode::SUCCESS)
}

fn late(bench: &Bench) -> ExitCode {
    // Chosen, not calibrated: with these, a run of one machine is comparable to its next, whatever
    // its clock does meanwhile. fib(35) takes 35 to 75 ms on the machine that this was written on.
    let (k, jobs_per_core) = bench.pick([(25, 100), (30, 150), (33, 280), (35, 300)]);
    let plan = Plan {
        k,
        jobs: jobs_per_core * cores(),
        late: bench.pick([10, 40, 200, 200]),
        every: Duration::from_millis(bench.pick([2, 5, 5, 10])),
    };
    let sparse = Plan {
        late: bench.pick([5, 10, 80, 200]),
        every: Duration::from_millis(25),
        ..plan
    };
    let go = Go::new("late_job");
    let goroutines = |name, plan| {
        let go = &go;
        Contender::new(name, move || Ok(sample(&in_go(go, plan)?)))
    };
    let mut contenders = vec![goroutines("goroutines", plan)];
    for (name, open) in QUEUED {
        let plan = if name == HIGH_SPARSE { sparse } else { plan };
        contenders.push(Contender::new(name, move || {
            Ok(sample(&queued(&plan, open)))
        }));
    }
    let started = move || Ok(sample(&started_futures(&plan)));
    contenders.push(Contender::new(STARTED_FUTURES, started));
    contenders.push(goroutines("goroutines, sparse", sparse));
    let contest = Contest::new(bench, contenders, [1, 1, 1, 5], BOUND).ending_threads();
    contest.report(|report| {
        println!(
            "{} long jobs of fib({k}), {} small ones of fib({SMALL}), one each {:?}; sparse: {} each {:?}",
            plan.jobs, plan.late, plan.every, sparse.late, sparse.every,
        );
        report.table(
            "Ends of the long jobs, s; latency of the small ones from when they are meant to arrive, ms",
            "",
            &[
                Column::median("first", "first_long_end"),
                Column::spread("total", "total"),
                Column::median("p50", "late_p50"),
                Column::spread("p99", "late_p99"),
                Column::median("max", "late_max"),
            ],
        );
        report.ratios(
            "
            total_twolane_over_rayon: total of twolane, small ones High / rayon
            total_twolane_futures_over_rayon: total of twolane futures / rayon
            total_twolane_all_normal_over_rayon: total of twolane, all Normal / rayon
            late_p50_rayon_over_twolane_high: late_p50 of rayon / twolane, small ones High
            late_p99_twolane_high_over_go: late_p99 of twolane, small ones High / goroutines
            late_p99_twolane_high_over_go_sparse: late_p99 of twolane, small ones High, sparse / goroutines, sparse
            ",
        );
    })
}

type Open = fn(&Handle) -> Contestant;

const QUEUED: [(&str, Open); 8] = [
    ("spawn_blocking", contenders::spawn_blocking),
    ("rayon", contenders::rayon_pool),
    ("two rayon pools, niced", contenders::two_pools),
    ("second runtime", contenders::second_runtime),
    ("twolane, all Normal", contenders::normal),
    ("twolane, small ones High", contenders::high),
    ("twolane futures", contenders::futures),
    (HIGH_SPARSE, contenders::high),
];
const HIGH_SPARSE: &str = "twolane, small ones High, sparse";
const STARTED_FUTURES: &str = "200 started futures";
