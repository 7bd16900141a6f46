//! How late does the I/O lane answer in a container that may use one core?
//!
//! The setting of `io_tail`, in a cgroup whose CPU quota is one core's time: a
//! process that has used it up stands still, I/O lane and all, until the period
//! (100 ms) is over. No nice value helps against that. The contenders:
//!
//! - `io_alone`: no CPU load,
//! - `second_runtime_cores`: a second runtime with as many workers as the
//!   *machine* has cores, what a program sized for the machine does,
//! - `second_runtime_available`: with as many as `available_parallelism` says,
//!   which honours the quota,
//! - `twolane_cores_unpaced`, `twolane_unpaced`: twolane without its pacing,
//!   with as many threads as the machine has cores, and with its own choice,
//! - `twolane`: with its defaults.
//!
//! The I/O runtime has as many workers as the machine has cores, for all alike.
//! Each slice is a process of its own inside the cgroup, so that whatever asks
//! for the quota finds it. The client stays outside, as a user's would be: one
//! that is stopped together with its server sees nothing of it. The kernel's
//! count of periods in which the group was throttled stands beside the
//! latencies.
//!
//! # What it does not measure
//!
//! What `io_tail` doesn't. Quotas of several cores, and of fractions. Neighbours
//! in other cgroups, and what a quota of cgroup v2 with a burst would forgive.
//!
//! # How to run it
//!
//! It needs Linux, more than one core, and the right to make a cgroup below its
//! own, with the cpu controller (v1 or v2): root, mostly. Without, it says so
//! and ends.
//!
//! ```text
//! cargo bench --bench quota_tail              # seven minutes
//! cargo bench --bench quota_tail -- --quick   # 20 seconds
//! cargo bench --bench quota_tail -- --only twolane --slices 2
//! ```
//!
//! It writes `target/twolane/quota_tail.json`.

// In a program `pub` is no promise to anybody.
#![allow(unreachable_pub)]

#[path = "../support/mod.rs"]
mod support;
#[path = "../tail/mod.rs"]
mod tail;

mod cgroup;
mod contender;
mod inside;
mod process;
mod slice;
mod table;

use std::time::Duration;

use clap::Parser;

use cgroup::Cgroup;
use contender::Contender;
use slice::{Settings, Slice};
use support::{Report, cores};
use tail::JOB;
use tail::figures::print_and_report;
use tail::findings::{self, chosen};
use tail::rounds::Rounds;
use tail::work::Work;

type Findings = findings::Findings<Contender, Slice>;

/// One core's time, in the kernel's usual period.
const QUOTA: Duration = Duration::from_millis(100);
const PERIOD: Duration = Duration::from_millis(100);

#[derive(Parser)]
#[command(about = "How late does the I/O lane answer in a container that may use one core?")]
struct Args {
    #[command(flatten)]
    rounds: Rounds,
    #[command(flatten)]
    inside: inside::Args,
}

fn main() {
    let args = Args::parse();
    if let Some(contender) = &args.inside.inside {
        let [contender] = chosen(
            &Contender::ALL,
            Contender::name,
            std::slice::from_ref(contender),
        )[..] else {
            panic!("one contender at a time")
        };
        inside::serve(contender, &args.inside);
    }
    let (slices, measured) = (args.rounds.slices(), args.rounds.measured());

    let mut report = Report::new("quota_tail");
    let cgroup = match cgroup() {
        Ok(cgroup) => cgroup,
        Err(reason) => {
            println!("skipped: {reason}");
            report.row("all", &format!("skipped: {reason}"), "", f64::NAN, 0);
            report.write();
            return;
        }
    };
    let work = Work::calibrated(JOB);
    let alone = work.best_of(20).as_secs_f64() * 1e3;
    let settings = Settings {
        cores: cores(),
        work,
        measured,
    };
    println!(
        "{} cores, of which {} may use {QUOTA:?} in {PERIOD:?}; a job is {} steps, {alone:.2} ms \
         alone; {slices} slices of {measured:?} each",
        settings.cores,
        cgroup.folder().display(),
        work.steps,
    );

    let run = |contender| Ok(slice::run(contender, &cgroup, &settings));
    let findings = args.rounds.run(&Contender::ALL, Contender::name, run);
    drop(cgroup);

    table::print(&findings, settings.cores);
    report.row("job", "alone", "ms", alone, 20);
    table::report(&findings, &mut report);
    print_and_report(&table::ratios(&findings), &mut report);
    report.write();
}

fn cgroup() -> Result<Cgroup, String> {
    if cores() == 1 {
        return Err("a quota of one core is no limit on a machine with one".to_owned());
    }
    Cgroup::create(QUOTA, PERIOD)
}
