//! How late does a thread get a core that the CPU lane computes on?
//!
//! One thread wakes another while jobs of 5 ms compute on all cores:
//!
//! - `timer`: the thread that wakes the other one sleeps for 1 to 2 ms. How late does it wake?
//! - `remote`: it is bound to one core, and wakes a thread that is bound to another,
//! - `free`: neither is bound.
//!
//! The contenders differ in where the jobs run: nowhere (`idle`), in a second Tokio runtime, in
//! twolane whose process never ticks (`twolane_plain`), and in twolane with its defaults. In
//! `twolane_slices` and `twolane_both`, which are the same two, the threads that sleep and wake have
//! slices of 0.1 ms.
//!
//! On a kernel that preempts lazily (Linux 7 by default), `remote` waits for a tick. `.ci/kernels`
//! runs this bench on several kernels.
//!
//! # What it does not measure
//!
//! What a request makes of it: see `io_tail`. Machines whose cores share no cache.
//!
//! ```text
//! cargo bench --bench wakeups
//! ```

mod pair;

use std::cell::LazyCell;
use std::process::ExitCode;
use std::time::Duration;

use twolane_benches::tail::lanes::{Lane, tick};
use twolane_benches::tail::load::Load;
use twolane_benches::tail::work::Work;
use twolane_benches::tail::{JOB, REST, WARM_UP};
use twolane_benches::{
    Bench, BoxError, Column, Contender, Contest, Sample, cores, io_runtime, lane,
};

const CONTENDERS: [&str; 6] = [
    "idle",
    "second_runtime",
    "twolane_plain",
    "twolane_slices",
    "twolane",
    "twolane_both",
];
/// How long either takes, at most.
const FINDS_OUT: Duration = Duration::from_secs(3);
const KINDS: [(&str, &str); 3] = [
    ("timer", "timer_p99"),
    ("remote", "remote_p99"),
    ("free", "free_p99"),
];

fn main() -> ExitCode {
    let bench = Bench::new("wakeups");
    let measured = Duration::from_millis(bench.pick([100, 700, 2_000, 5_000]));
    let work = LazyCell::new(|| Work::calibrated(JOB));
    let work = &work;
    let contenders =
        CONTENDERS.map(|name| Contender::new(name, move || slice(name, **work, measured)));
    let contest = Contest::new(&bench, contenders, [1, 2, 4, 8], measured + REST).ending_threads();
    contest.report(|report| {
        for (kind, p99) in KINDS {
            report.table(
                &format!("{kind}: ms; slices of {measured:?}, jobs of {JOB:?}"),
                "",
                &[
                    Column::pooled("p50", kind, 0.5),
                    Column::pooled("p90", kind, 0.9),
                    Column::pooled("p99", kind, 0.99),
                    Column::spread("p99 of a slice", p99),
                    Column::pooled("max", kind, 1.0),
                    Column::median("jobs/s", "jobs_per_s"),
                ],
            );
        }
        report.ratios(
            "
            remote_p99_twolane_over_plain: remote_p99 of twolane / twolane_plain
            throughput_twolane_over_plain: jobs_per_s of twolane / twolane_plain
            remote_p99_twolane_over_idle: remote_p99 of twolane / idle
            ",
        );
    })
}

fn slice(name: &str, work: Work, measured: Duration) -> Result<Sample, BoxError> {
    let io = io_runtime(cores());
    let in_flight = 4 * cores();
    tick(["twolane", "twolane_both"].contains(&name));
    let has_lane = name.starts_with("twolane");
    let cpu = has_lane.then(|| lane(io.handle(), |lane| lane));
    let handle = cpu.as_ref().map(|cpu| cpu.handle().clone());
    let jobs = match &handle {
        Some(cpu) => Some(Lane::on(cpu.clone(), in_flight)),
        None if name == "idle" => None,
        None => Some(Lane::second_runtime(cores(), in_flight, 0)),
    };
    let load = jobs.map(|lane| Load::start(lane, work));
    std::thread::sleep(WARM_UP);
    if ["twolane", "twolane_both"].contains(&name) {
        // It finds out whether the kernel is lazy, and no longer ticks since the jobs have begun.
        std::thread::sleep(FINDS_OUT);
    }
    let completed = || load.as_ref().map_or(0, Load::completed);
    let before = completed();
    let mut sample = Sample::default();
    let short = ["twolane_slices", "twolane_both"].contains(&name);
    let took = pair::measure(measured, short, &mut sample)?;
    let after = completed();
    if let Some(load) = load {
        let rate = (after - before) as f64 / took.as_secs_f64();
        sample.put("jobs_per_s", "1/s", rate);
        load.stop();
    }
    Ok(sample)
}
