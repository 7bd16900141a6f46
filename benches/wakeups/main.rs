//! How late does a thread get a core that the CPU lane computes on?
//!
//! One thread wakes another while jobs of 5 ms compute on all cores:
//!
//! - `timer`: the thread that wakes the other one sleeps for 1 to 2 ms. How late does it wake?
//! - `remote`: it is bound to one core, and wakes a thread that is bound to another,
//! - `free`: neither is bound.
//!
//! The contenders differ in where the jobs run: nowhere (`idle`), in a second Tokio runtime, in
//! twolane that never interrupts its cores (`twolane_plain`), and in twolane with its defaults. In
//! `twolane_slices` and `twolane_both`, which are the same two, the threads that sleep and wake have
//! slices of 0.1 ms.
//!
//! On a kernel that preempts lazily (Linux 7 by default), `remote` waits for a tick. `.ci/kernels`
//! runs this bench on several kernels. At the end it prints what twolane has found out.
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
use std::time::{Duration, Instant};

use giveway::{Preemption, core_interrupts, preemption};
use twolane_benches::tail::lanes::{Lane, interrupt_cores};
use twolane_benches::tail::load::Load;
use twolane_benches::tail::work::Work;
use twolane_benches::tail::{JOB, REST, WARM_UP};
use twolane_benches::{Bench, Column, Contender, Contest, Ratio, Sample, cores, io_runtime, lane};

const CONTENDERS: [&str; 6] = [
    "idle",
    "second_runtime",
    "twolane_plain",
    "twolane_slices",
    "twolane",
    "twolane_both",
];
const PATIENCE: Duration = Duration::from_secs(4);
const KINDS: [(&str, &str); 3] = [
    ("timer", "timer_p99"),
    ("remote", "remote_p99"),
    ("free", "free_p99"),
];

fn main() {
    let bench = Bench::new("wakeups");
    let measured = Duration::from_millis(bench.pick([100, 700, 2_000, 5_000]));
    let work = LazyCell::new(|| Work::calibrated(JOB));
    let work = &work;
    let contenders =
        CONTENDERS.map(|name| Contender::new(name, move || slice(name, **work, measured)));
    let contest = Contest::new(&bench, contenders, [1, 2, 4, 8], measured + REST).ending_threads();
    let Some(report) = contest.run() else { return };
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
                Column::sum("interrupts", "interrupts"),
            ],
        );
    }
    // On a kernel that preempts at once `twolane` and `twolane_plain` run the same code: the
    // columns show that it is the same, and a ratio would be one of two noises.
    interrupt_cores(true);
    let is_lazy = preemption() == Preemption::Lazy;
    if is_lazy {
        report.ratios(
            "
            remote_p99_twolane_over_plain: remote_p99 of twolane / twolane_plain
            throughput_twolane_over_plain: jobs_per_s of twolane / twolane_plain
            ",
        );
    }
    report.ratios("remote_p99_twolane_over_idle: remote_p99 of twolane / idle");
    report.put("kernel_is_lazy", Ratio::once(f64::from(u8::from(is_lazy))));
    report.finish();
    println!("preemption: {:?}", preemption());
}

fn slice(name: &str, work: Work, measured: Duration) -> Result<Sample, String> {
    let io = io_runtime(cores());
    let in_flight = 4 * cores();
    let has_interrupts = ["twolane", "twolane_both"].contains(&name);
    interrupt_cores(has_interrupts);
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
    if has_interrupts {
        // The first one finds out meanwhile. On a single core it does not.
        let began = Instant::now();
        while preemption() == Preemption::Unknown && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let completed = || load.as_ref().map_or(0, Load::completed);
    let before = (completed(), core_interrupts());
    let mut sample = Sample::default();
    let short = ["twolane_slices", "twolane_both"].contains(&name);
    let took = pair::measure(measured, short, &mut sample)?;
    let after = (completed(), core_interrupts());
    sample.put("interrupts", "", (after.1 - before.1) as f64);
    if let Some(load) = load {
        let rate = (after.0 - before.0) as f64 / took.as_secs_f64();
        sample.put("jobs_per_s", "1/s", rate);
        load.stop();
    }
    Ok(sample)
}
