//! Jobs of all lengths arrive at a load of 0.9, and none says which kind it is: by how much is
//! each slower than alone?
//!
//! # The loads
//!
//! The arrivals are random (exponential gaps), the same for all contenders of a round and others in
//! the next one, and do not wait for answers. In each round their work is nine tenths of what the
//! cores can do until the last one.
//!
//! - **ten sites**: jobs of ten lines of the program, of 10 µs to 100 ms, each length 2.8 times
//!   the one before. Heavy-tailed: a job of four times the length is half as frequent. The two
//!   longest of the ten make two thirds of the work.
//! - **one site**: all from one line. 99 of 100 take 20 µs, one takes 20 ms.
//!
//! # The contenders
//!
//! Each is the process's only load while it runs, on as many threads as there are cores:
//!
//! - twolane, `spawn_cpu`: the lane finds out which lines' jobs are short;
//! - the same with `short_jobs_first(false)`: first come, first served;
//! - twolane, jobs of a millisecond or less at `Priority::High`: labels that are always right;
//! - tasks of a second Tokio runtime;
//! - goroutines, in a process of their own.
//!
//! # What is counted
//!
//! *Slowdown*: the time from when a job is meant to arrive to its end, over what it takes alone
//! on a core. *Long work*: how much work of jobs of more than a millisecond was done a second,
//! until the last of them ended.
//!
//! A source that is late is part of the slowdown: a plain thread, in Go a goroutine.

mod contenders;
mod load;

use std::process::ExitCode;
use std::time::Duration;

use twolane_benches::go::Go;
use twolane_benches::tail::work::Work;
use twolane_benches::{Bench, Column, Contender, Contest};

use self::contenders::{BOUND, WAYS, in_go, in_rust};
use self::load::{KINDS, LONG_WORK, Load, mean, p99};

pub fn run(bench: &Bench) -> ExitCode {
    let time = Duration::from_millis(bench.pick([200, 1_000, 4_000, 10_000]));
    let ms = Work::calibrated(Duration::from_millis(1));
    let go = Go::new("mixed_load");
    let go = &go;
    let mut contenders = Vec::new();
    for kind in KINDS {
        for (name, open) in WAYS {
            let mut loads = Load::of_rounds(kind, time);
            let turn = move || {
                let load = loads.next().unwrap();
                let latencies = match open {
                    Some(open) => in_rust(&load, open, ms),
                    None => in_go(go, &load)?,
                };
                Ok(load.sample(&latencies))
            };
            contenders.push(Contender::new(format!("{}: {name}", kind.name), turn));
        }
    }
    let contest = Contest::new(bench, contenders, [1, 1, 2, 5], BOUND).ending_threads();
    contest.report(|report| {
        for kind in KINDS {
            let mut columns = Vec::new();
            for class in kind.classes() {
                columns.push(Column::median(class, mean(class)));
                columns.push(Column::median("p99", p99(class)));
            }
            columns.push(Column::spread("p99 up to 1 ms", p99(load::SHORT)));
            columns.push(Column::median("long work", LONG_WORK));
            let title = format!("slowdown by what a job takes, mean and p99: {}", kind.name);
            report.table(&title, &format!("{}: ", kind.name), &columns);
        }
        let ratio = |name, metric, over, under| {
            let [over, under] = [over, under].map(|way| format!("ten sites: {way}"));
            report.ratio(name, metric, &over, &under);
        };
        let (short, long) = (p99(load::SHORT), mean(load::LONG));
        let [ours, fifo, labelled] = ["twolane", "twolane, FIFO", "twolane, short ones High"];
        ratio(
            "slowdown_p99_short_fifo_over_labelled",
            short,
            fifo,
            labelled,
        );
        ratio("slowdown_p99_short_over_labelled", short, ours, labelled);
        ratio("slowdown_long_over_fifo", long, ours, fifo);
        ratio("long_work_over_fifo", LONG_WORK, ours, fifo);
    })
}
