//! How late does the I/O lane answer in a container that may use half a core, one, or more?
//!
//! The setting of `io_tail`, in a cgroup with a CPU quota of that much: a process
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
//! What `io_tail` doesn't. Quotas of the machine's cores and more, which are no limit. Neighbours in
//! other cgroups, and what a quota of cgroup v2 with a burst would forgive.
//!
//! `work` is the time that the jobs take alone on a core, over the quota's.
//!
//! It needs Linux, more than one core, and the right to make a cgroup below its own,
//! with the cpu controller (v1 or v2): root, mostly. Without, it says so and ends.
//!
//! ```text
//! cargo bench --bench quota_tail    # 50 seconds; --full: 15 minutes
//! ```

mod inside;
mod process;

use std::cell::LazyCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::runtime::Handle;
use twolane_benches::cgroup::Cgroup;
use twolane_benches::tail::client::{COLUMNS, ratios, slice};
use twolane_benches::tail::lanes::Lane;
use twolane_benches::tail::work::Work;
use twolane_benches::tail::{JOB, REST};
use twolane_benches::{
    Bench, BoxError, Column, Contender, Contest, Sample, child, cores, not_here,
};

use inside::Role;
use process::Process;

const PERIOD: Duration = Duration::from_millis(100);

/// In cores. Those of at least the machine's cores are no limit.
const QUOTAS: [f64; 5] = [0.5, 1.0, 1.5, 2.0, 3.5];
/// The quota of which all contenders are measured.
const MAIN: f64 = 1.0;

const CONTENDERS: [&str; 5] = [
    "io_alone",
    "second_runtime_cores",
    "second_runtime_available",
    "twolane_unpaced",
    "twolane",
];
/// Of the other quotas.
const THESE: [&str; 3] = ["io_alone", "twolane_unpaced", "twolane"];

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

fn main() -> ExitCode {
    if let Some(role) = child::role::<Role>() {
        inside::serve(&role);
    }
    let bench = Bench::new("quota_tail");
    let measured = Duration::from_millis(bench.pick([200, 1_000, 2_000, 10_000]));
    let work = LazyCell::new(|| Work::calibrated(JOB));
    let cores = cores();
    let quotas = QUOTAS.into_iter().filter(|quota| *quota < cores as f64);
    let groups: Vec<_> = quotas
        .map(|quota| (quota, LazyCell::new(move || Cgroup::create(quota, PERIOD))))
        .collect();
    let (work, mut contenders) = (&work, Vec::new());
    for (quota, cgroup) in &groups {
        let names = if *quota == MAIN {
            &CONTENDERS[..]
        } else {
            &THESE
        };
        for name in names {
            contenders.push(Contender::new(named(*quota, name), move || {
                let cgroup = cgroup.as_ref();
                let cgroup = cgroup.map_err(|why| not_here("cgroup of its own", why))?;
                slice_in(cgroup, *quota, name, **work, measured)
            }));
        }
    }
    let contest = Contest::new(&bench, contenders, [1, 2, 2, 6], measured + REST);
    contest.report(|report| {
        let title = format!("latency, ms; slices of {measured:?}, periods of {PERIOD:?}");
        report.table(&title, "", &COLUMNS);
        report.table(
            "what the kernel counted",
            "",
            &[
                Column::median("threads", "threads"),
                Column::sum("throttled", "nr_throttled"),
                Column::sum("of periods", "nr_periods"),
                Column::sum("for ms", "throttled_time"),
                Column::median("work, of the quota", "work"),
            ],
        );
        let ours = named(MAIN, "twolane");
        for name in &CONTENDERS[..4] {
            let peer = named(MAIN, name);
            for p in ["p99", "p999"] {
                let ratio = format!("{p}_twolane_over_{name}");
                ratios(report, &ratio, p, &ours, &peer);
            }
            let ratio = format!("cpu_throughput_twolane_over_{name}");
            report.ratio(ratio, "jobs_per_s", &ours, &peer);
        }
    })
}

fn named(quota: f64, contender: &str) -> String {
    format!("{quota} cores, {contender}")
}

/// One slice of one contender, seen from outside the cgroup.
fn slice_in(
    cgroup: &Cgroup,
    quota: f64,
    name: &str,
    work: Work,
    time: Duration,
) -> Result<Sample, BoxError> {
    let role = Role {
        contender: name.to_owned(),
        work,
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
    let jobs = sample.figure("jobs_per_s").unwrap_or(0.0) * JOB.as_secs_f64();
    sample.put("work", "", jobs / quota);
    sample.put("threads", "", threads as f64);
    sample.put("nr_periods", "", throttled.periods as f64);
    sample.put("nr_throttled", "", throttled.throttled as f64);
    sample.put("throttled_time", "ms", throttled.time.as_secs_f64() * 1e3);
    Ok(sample)
}
