//! How late does the I/O lane answer in a container that may use one core?
//!
//! The setting of `io_tail`, in a cgroup whose CPU quota is one core's time: a process
//! that has used it up stands still, I/O lane and all, until the period (100 ms) is
//! over. No nice value helps against that. The contenders:
//!
//! - `io_alone`: no CPU load,
//! - `second_runtime_cores`: a second runtime with as many workers as the *machine* has
//!   cores, what a program sized for the machine does,
//! - `second_runtime_available`: with as many as `available_parallelism` says, which
//!   honours the quota,
//! - `twolane_unpaced`: twolane without its throttle,
//! - `twolane`: with its defaults.
//!
//! The I/O runtime has as many workers as the machine has cores, for all alike. Each slice is a
//! process of its own inside the cgroup, so that what asks for the quota finds it. The client stays
//! outside, as a user's would be: one that is stopped together with its server sees nothing of it.
//! The kernel's count of periods in which the group was throttled stands beside the latencies.
//!
//! # What it does not measure
//!
//! What `io_tail` doesn't. Quotas of several cores, and of fractions. Neighbours in
//! other cgroups, and what a quota of cgroup v2 with a burst would forgive.
//!
//! It needs Linux, more than one core, and the right to make a cgroup below its own,
//! with the cpu controller (v1 or v2): root, mostly. Without, it says so and ends.
//!
//! ```text
//! cargo bench --bench quota_tail    # 20 seconds; --full: seven minutes
//! ```

mod inside;
mod process;

use std::cell::LazyCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::runtime::Handle;
use twolane_benches::cgroup::Cgroup;
use twolane_benches::tail::client::{COLUMNS, ratios, slice};
use twolane_benches::tail::lanes::Lane;
use twolane_benches::tail::work::Work;
use twolane_benches::tail::{JOB, REST};
use twolane_benches::{Bench, Column, Contender, Contest, Sample, child, cores};

use inside::Role;
use process::Process;

/// One core's time, in the kernel's usual period.
const QUOTA: Duration = Duration::from_millis(100);
const PERIOD: Duration = Duration::from_millis(100);

const CONTENDERS: [&str; 5] = [
    "io_alone",
    "second_runtime_cores",
    "second_runtime_available",
    "twolane_unpaced",
    "twolane",
];

/// Where the jobs of a contender run, if it has any; called inside the quota, with the
/// machine's cores and the number of jobs in flight.
fn open(name: &str, io: &Handle, cores: usize, jobs: usize) -> Option<Lane> {
    let available = || available_parallelism().map_or(1, usize::from);
    Some(match name {
        "second_runtime_cores" => Lane::second_runtime(cores, jobs, 0),
        "second_runtime_available" => Lane::second_runtime(available(), jobs, 0),
        "twolane_unpaced" => Lane::twolane(io, jobs, |lane| lane.throttle_to_quota(false)),
        "twolane" => Lane::twolane(io, jobs, |lane| lane),
        _ => return None,
    })
}

fn main() {
    if let Some(role) = child::role::<Role>() {
        inside::serve(&role);
    }
    let bench = Bench::new("quota_tail");
    let measured = Duration::from_millis(bench.pick([200, 1_000, 2_000, 10_000]));
    let work = LazyCell::new(|| Work::calibrated(JOB));
    let cgroup = LazyCell::new(|| match cores() {
        1 => Err("a quota of one core is no limit on a machine with one".to_owned()),
        _ => Cgroup::create(QUOTA, PERIOD),
    });
    let (work, cgroup) = (&work, &cgroup);
    let contenders = CONTENDERS.map(|name| {
        Contender::new(name, move || {
            let cgroup = cgroup.as_ref().map_err(String::clone)?;
            slice_in(cgroup, name, **work, measured)
        })
    });
    let contest = Contest::new(&bench, contenders, [1, 2, 2, 6], measured + REST);
    let Some(report) = contest.run() else { return };
    let title = format!("latency, ms; slices of {measured:?}, {QUOTA:?} of CPU time in {PERIOD:?}");
    report.table(&title, "", &COLUMNS);
    report.table(
        "what the kernel counted",
        "",
        &[
            Column::median("threads", "threads"),
            Column::sum("throttled", "nr_throttled"),
            Column::sum("of periods", "nr_periods"),
            Column::sum("for ms", "throttled_time"),
        ],
    );
    for peer in &CONTENDERS[..4] {
        for p in ["p99", "p999"] {
            let name = format!("{p}_twolane_over_{peer}");
            ratios(&report, &name, p, "twolane", peer);
        }
        let name = format!("cpu_throughput_twolane_over_{peer}");
        report.ratio(name, "jobs_per_s", "twolane", peer);
    }
    report.finish();
}

/// One slice of one contender, seen from outside the cgroup.
fn slice_in(cgroup: &Cgroup, name: &str, work: Work, time: Duration) -> Result<Sample, String> {
    let role = Role {
        contender: name.to_owned(),
        steps: work.steps,
        cores: cores(),
    };
    let mut inside = Process::start(&role, cgroup)?;
    let port = inside.ask("listen")[0] as u16;
    let [threads, _] = inside.ask("load");
    let mut throttling = Vec::new();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut sample = slice(address, time, || {
        throttling.push(cgroup.throttling());
        let [jobs, ns] = inside.ask("count");
        (jobs, Duration::from_nanos(ns))
    });
    let throttled = throttling[1].since(throttling[0]);
    sample.put("threads", "", threads as f64);
    sample.put("nr_periods", "", throttled.periods as f64);
    sample.put("nr_throttled", "", throttled.throttled as f64);
    sample.put("throttled_time", "ms", throttled.time.as_secs_f64() * 1e3);
    Ok(sample)
}
