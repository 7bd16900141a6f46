//! A limit in time: an HTTP service at two and five times the load that it can serve, of jobs that
//! take 20 ms each, or 1 to 100 ms.
//!
//! No request should wait for a thread for longer than half a second. The same axum service, each
//! contender a process of its own:
//!
//! - `max_wait`: the CPU lane with [`Builder::max_wait`](twolane::Builder::max_wait), which is that
//!   time. `no limit`: the same lane without it.
//! - `queue_limit`: the lane with a limit in jobs, by the formula *threads x (1 + longest wait / time
//!   of a job)*. Its owner has measured the mean of his jobs, which do not change.
//! - `semaphores`: `spawn_blocking` behind two semaphores, one that refuses by the same formula, and
//!   one for as many jobs as there are cores.
//! - `rayon`: a rayon pool whose threads have nice 16, behind the first of these.
//!
//! And at loads from half of what the service can do to twice that, jobs of 20 ms in the handler, in
//! `spawn_blocking` without a limit, behind the semaphores, and on the lane: the p99 of `/health`,
//! which the README's picture shows.
//!
//! And short jobs beside long ones on one lane, in this process: how many of those that were admitted
//! waited for more than 1.2 times the half second, beside the same lane in FIFO order.
//!
//! Look at the waits (from the submission to the first instruction of the job) of the requests that
//! were accepted: the p99 should be at most 1.2 times the half second; at the work done, which should
//! be that of the lane without a limit; and at `/health`.
//!
//! ```text
//! cargo bench --bench max_wait              # ten minutes
//! cargo bench --bench max_wait -- --quick   # two minutes
//! ```

mod load;
mod mix;
mod server;

use std::cell::LazyCell;
use std::process::ExitCode;
use std::time::Duration;

use twolane_benches::tail::work::Work;
use twolane_benches::{Bench, Column, Contender, Contest, child};

use crate::load::Load;
use crate::mix::Mix;
use crate::server::{Lengths, Server, Side};

/// Of what the service can do.
const LOADS: [f64; 6] = [0.5, 0.8, 1.1, 1.4, 1.7, 2.0];

fn main() -> ExitCode {
    if let Some(server) = child::role::<Server>() {
        server.run().unwrap();
    }
    let bench = Bench::new("max_wait");
    let threads = twolane::CpuRuntime::default_threads().unwrap();
    let ms = LazyCell::new(|| Work::calibrated(Duration::from_millis(10)).times(0.1));
    let ms = &ms;
    let seconds = |forms| Duration::from_secs_f64(bench.pick(forms));
    let (warm_up, counted) = (
        seconds([0.2, 1.0, 3.0, 3.0]),
        seconds([0.3, 2.0, 10.0, 20.0]),
    );
    let contender = |name, side: Side, lengths: Lengths, overload: f64| {
        let load = Load {
            per_second: overload * threads as f64 / lengths.mean().as_secs_f64(),
            lengths,
            warm_up,
            counted,
        };
        let turn = move || {
            load.offer(&Server {
                side,
                lengths,
                threads,
                ms: **ms,
            })
        };
        Contender::new(name, turn)
    };
    let idle = contender("idle".to_owned(), Side::MaxWait, Lengths::Same, 0.0);
    let mut contenders = vec![idle];
    for (of, lengths) in Lengths::ALL {
        for overload in [2.0, 5.0] {
            for (name, side) in Side::ALL {
                let name = format!("{of}, {overload} times, {name}");
                contenders.push(contender(name, side, lengths, overload));
            }
        }
    }
    for load in LOADS {
        for (name, side) in Side::OF_LOADS {
            let name = format!("load {load}, {name}");
            contenders.push(contender(name, side, Lengths::Same, load));
        }
    }
    for (short, long) in mix::LOADS {
        for (order, short_first) in [("FIFO", false), ("short first", true)] {
            let turn = move || {
                let mix = Mix {
                    loads: (short, long),
                    short_first,
                    threads,
                    ms: **ms,
                    warm_up,
                    counted,
                };
                mix.run()
            };
            let name = format!("short {short} long {long}, {order}");
            contenders.push(Contender::new(name, turn));
        }
    }
    let contest = Contest::new(&bench, contenders, [1, 1, 1, 3], Duration::from_secs(90));
    contest.report(|report| {
        report.table(
            "waits of accepted requests, ms; work done, of what the cores can do; answers a second; /health, ms; memory, MiB",
            "",
            &[
                Column::pooled("wait p50", "wait", 0.5),
                Column::pooled("p99", "wait", 0.99),
                Column::spread("work", "work"),
                Column::median("200", "served"),
                Column::median("503", "refused"),
                Column::pooled("/health p50", "health", 0.5),
                Column::pooled("p99", "health", 0.99),
                Column::median("memory", "memory"),
            ],
        );
        report.table(
            "short and long jobs: refused, and later than 1.2 times the limit, %; waits, ms",
            "short ",
            &[
                Column::median("short 503", "short_refused"),
                Column::median("late", "short_late"),
                Column::pooled("p50", "short", 0.5),
                Column::pooled("p99", "short", 0.99),
                Column::median("long 503", "long_refused"),
                Column::median("late", "long_late"),
                Column::pooled("p50", "long", 0.5),
                Column::pooled("p99", "long", 0.99),
            ],
        );
        report.ratios(
            "
            work_20_ms_2_max_wait_over_no_limit: work of 20 ms, 2 times, max_wait / 20 ms, 2 times, no limit
            work_20_ms_5_max_wait_over_no_limit: work of 20 ms, 5 times, max_wait / 20 ms, 5 times, no limit
            work_1_to_100_ms_2_max_wait_over_no_limit: work of 1 to 100 ms, 2 times, max_wait / 1 to 100 ms, 2 times, no limit
            work_1_to_100_ms_5_max_wait_over_no_limit: work of 1 to 100 ms, 5 times, max_wait / 1 to 100 ms, 5 times, no limit
            ",
        );
    })
}
