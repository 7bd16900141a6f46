//! How late does the I/O lane answer beside jobs that come and go?
//!
//! `io_tail` keeps all cores busy. Most services have less to do: a worker sleeps, computes for some
//! milliseconds, and sleeps again, and each time the kernel owes it something. Here jobs come at
//! random, from a task of the I/O lane that other tasks await, and the same client as in `io_tail`
//! asks the same echo each 2 ms. A case is a length of jobs and a load:
//!
//! - `1ms` or `5ms` on an idle core, always the same work, without system calls,
//! - `0.5` or `2` times what the cores can do. At most 64 jobs for each core are under way: the
//!   others are refused.
//!
//! The contenders:
//!
//! - `idle`: no jobs come,
//! - `second_runtime`, `rayon`: on as many threads as there are cores, at nice 16,
//! - `unticked`: twolane whose process never ticks ([`giveway::tick_each`]),
//! - `twolane`, `high`, `low`: with its defaults, at the priority of that name,
//! - `each_0.5ms`, `each_2ms`: with that tick.
//!
//! # What it does not measure
//!
//! Jobs that make system calls, which have the kernel look. Clients in another process. Jobs between
//! the milliseconds: Tokio's timers end at these, so many short ones come at once.
//!
//! ```text
//! cargo bench --bench come_and_go                  # three minutes; --full: ten
//! cargo bench --bench come_and_go -- '5ms/0.5'     # one case, all contenders
//! ```

mod jobs;
mod lanes;

use std::cell::LazyCell;
use std::process::ExitCode;
use std::time::Duration;

use twolane_benches::tail::REST;
use twolane_benches::tail::client;
use twolane_benches::tail::echo::EchoLane;
use twolane_benches::tail::work::Work;
use twolane_benches::{Bench, Column, Contender, Contest, Report, cores};

use jobs::Arrivals;

/// How many milliseconds a job takes, and how much work comes, of what the cores can do.
const CASES: [(u32, f64); 3] = [(1, 0.5), (5, 0.5), (5, 2.0)];
const CONTENDERS: [&str; 9] = [
    "idle",
    "second_runtime",
    "rayon",
    "unticked",
    "twolane",
    "high",
    "low",
    "each_0.5ms",
    "each_2ms",
];
const COLUMNS: [Column; 8] = [
    Column::sum("requests", "requests"),
    Column::sum("over 1 ms", "over_1_ms"),
    Column::pooled("p50", "from_send", 0.5),
    Column::pooled("p99", "from_send", 0.99),
    Column::pooled("p99.9", "from_send", 0.999),
    Column::pooled("max", "from_send", 1.0),
    Column::median("jobs/s", "jobs_per_s"),
    Column::spread("CPU, cores", "cpu"),
];

fn main() -> ExitCode {
    let bench = Bench::new("come_and_go");
    let measured = Duration::from_millis(bench.pick([50, 1_000, 3_000, 5_000]));
    let millisecond = LazyCell::new(|| Work::calibrated(Duration::from_millis(1)));
    let millisecond = &millisecond;
    let contenders = CASES.into_iter().flat_map(|(length, load)| {
        CONTENDERS.map(|name| {
            Contender::new(case(length, load, name), move || {
                let io = EchoLane::start(cores());
                let lane = lanes::open(name, io.handle());
                let job = millisecond.times(f64::from(length));
                let gap = f64::from(length) / 1e3 / (load * cores() as f64);
                let gap = Duration::from_secs_f64(gap);
                let jobs = lane.map(|lane| Arrivals::start(io.handle(), lane, job, gap));
                let start = std::time::Instant::now();
                let ended = || jobs.as_ref().map_or(0, Arrivals::ended);
                let sample = client::slice(io.address(), measured, || (ended(), start.elapsed()));
                if let Some(jobs) = jobs {
                    jobs.stop();
                }
                Ok(sample)
            })
        })
    });
    let contest = Contest::new(&bench, contenders, [1, 1, 2, 4], measured + REST).ending_threads();
    contest.report(|report| {
        for (length, load) in CASES {
            let title = format!("jobs of {length}ms, {load} of what the cores can do; ms");
            report.table(&title, &case(length, load, ""), &COLUMNS);
            ratios(report, length, load);
        }
    })
}

fn case(length: u32, load: f64, contender: &str) -> String {
    format!("{length}ms/{load}/{contender}")
}

fn ratios(report: &Report, length: u32, load: f64) {
    for name in CONTENDERS.into_iter().filter(|name| *name != "unticked") {
        let [over, under] = [name, "unticked"].map(|name| case(length, load, name));
        let late = format!("{length}ms_{load}_p99_{name}_over_unticked");
        report.ratio(late, "from_send_p99", &over, &under);
        let cpu = format!("{length}ms_{load}_cpu_{name}_over_unticked");
        report.ratio(cpu, "cpu", &over, &under);
        if load > 1.0 && name != "idle" {
            let work = format!("{length}ms_{load}_work_{name}_over_unticked");
            report.ratio(work, "jobs_per_s", &over, &under);
        }
    }
}
