//! What does one tenant's flood cost the others, and what does fairness cost?
//!
//! One tenant submits ten times what the lane can do. Nine others submit little: each a twentieth of
//! the lane, half of the share that it would have if all ten wanted theirs; or a tenth, all of it.
//! Arrivals are random (Poisson), and a client that has waited for three seconds goes. What counts
//! is the latency of the nine, from when the request is due to its answer:
//!
//! - `alone`: without the flood, on the plain lane;
//! - `fifo`: `spawn_cpu`; `max_wait`: the same with a limit of 500 ms;
//! - `semaphores`: one for each tenant, with as many permits as the lane has threads;
//! - `fair`: [`with_key`](twolane::Handle::with_key).
//!
//! By lengths: `same`, all jobs take 5 ms; `long flood`, the flood's 20 ms and the others' 1 ms;
//! `mixed`, 1 to 20 ms.
//!
//! *Shares*: four keys of weights 1, 1, 2 and 4 that always have jobs queued, of 1 ms, 20 ms, 1 to 10
//! ms and 5 ms: the CPU time of each over its due, the worst of the four.
//!
//! *Cost*: jobs of a single key over the plain lane. Jobs that do nothing, one by one and a hundred at
//! a time, and jobs of 100 µs a hundred at a time; by the clock, and by the CPU time of all threads.
//!
//! What it is not: a measure of a flood that the service refuses before it reaches the lane, or of more
//! than two cores.
//!
//! ```text
//! cargo bench -p twolane-benches --bench tenants    # seven minutes
//! ```

mod cost;
mod load;

use std::cell::LazyCell;
use std::process::ExitCode;
use std::time::Duration;

use twolane_benches::tail::work::Work;
use twolane_benches::{Bench, Column, Contender, Contest};

use crate::load::{Load, Way};

fn main() -> ExitCode {
    let bench = Bench::new("tenants");
    let us = LazyCell::new(|| Work::calibrated(Duration::from_millis(5)).times(1.0 / 5_000.0));
    let us = &us;
    let seconds = |forms| Duration::from_secs_f64(bench.pick(forms));
    let (warm_up, counted) = (
        seconds([0.1, 0.5, 1.0, 2.0]),
        seconds([0.2, 1.5, 5.0, 20.0]),
    );
    let mut contenders = Vec::new();
    for (kind, lengths, each) in Load::KINDS {
        for (name, way) in Way::ALL {
            let load = Load {
                lengths,
                each,
                warm_up,
                counted,
            };
            let turn = move || Ok(load.run(way, **us));
            contenders.push(Contender::new(format!("{kind}, {name}"), turn));
        }
    }
    let jobs = bench.pick([200, 10_000, 50_000, 200_000]);
    contenders.push(Contender::new("shares", move || {
        Ok(cost::shares(counted, **us))
    }));
    for (length, batch) in cost::KINDS {
        for is_fair in [false, true] {
            let jobs = if (length, batch) == (0, 100) {
                jobs
            } else {
                jobs / 10
            };
            let turn = move || {
                let work = us.times(length as f64);
                Ok(cost::batches(is_fair, jobs, batch, work))
            };
            let name = cost::named(is_fair, length, batch);
            contenders.push(Contender::new(name, turn));
        }
    }
    let contest = Contest::new(&bench, contenders, [1, 1, 3, 5], Duration::from_secs(90));
    contest.report(|report| {
        report.table(
            "latency of the nine, ms; work, of what the cores can do; gave up or were refused, of the nine's",
            "",
            &[
                Column::pooled("p50", "nine", 0.5),
                Column::pooled("p99", "nine", 0.99),
                Column::spread("work", "work"),
                Column::median("unanswered", "unanswered"),
                Column::spread("worst share over due", "share"),
                Column::spread("a job, µs", "job"),
                Column::spread("its CPU time, µs", "cpu"),
            ],
        );
        for (kind, ..) in Load::KINDS {
            let [fair, alone, fifo] = ["fair", "alone", "fifo"].map(|way| format!("{kind}, {way}"));
            let of = kind.replace(',', "").replace(' ', "_");
            let p99 = format!("p99_{of}_fair_over_alone");
            report.ratio(p99, "nine_p99", &fair, &alone);
            let work = format!("work_{of}_fair_over_fifo");
            report.ratio(work, "work", &fair, &fifo);
        }
        for (us, batch) in cost::KINDS {
            let of = |is_fair| cost::named(is_fair, us, batch);
            report.ratio(
                format!("jobs_of_{us}_us_by_{batch}_fair_over_plain"),
                "job",
                &of(true),
                &of(false),
            );
        }
    })
}
