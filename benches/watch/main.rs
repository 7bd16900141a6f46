//! What does it cost to watch the I/O lane?
//!
//! Each tier of the watch, on against off:
//!
//! - **idle**: the CPU time of a process in which nothing happens, with and without
//!   `Builder::watch_io`: an I/O runtime of two workers (and once of one thread), and an
//!   idle CPU lane. The same is measured "in use": a watched task wakes up every 10 ms.
//! - **poll**: ns a poll of a future that is ready at once, in a loop on a runtime of the
//!   current thread: the bare future; the same in `watch`, while no lane of the process is
//!   watched ("off") and while one is ("on").
//! - **request**: the same for a `tower` service, from the call to the response, with
//!   `WatchLayer` around it.
//! - **span**: ns an enter and exit of one and the same span, with `SpanWatch` as a layer of `tracing-subscriber`'s registry and
//!   without it.
//! - **offload**: ns a job, in a batch of 50,000 closures that are submitted and
//!   then awaited (see `offload`).
//!
//! The records of the threads are the process's, and one watched lane switches them on for
//! all. So each turn makes its own runtime and lane, and both are gone before the next.
//!
//! # What it does not measure
//!
//! A lane with hundreds of threads: the watch reads each of them at each look. A stall and
//! its report. The stack of a stalled thread. Time on a machine that is busy with
//! something else: the column `others` says how much of it others had.
//!
//! ```text
//! cargo bench --bench watch               # two minutes
//! cargo bench --bench watch -- 'poll|span' # two tiers
//! ```

mod lanes;
mod loops;
mod tables;

use std::process::ExitCode;
use std::time::Duration;

use twolane_benches::tail::REST;
use twolane_benches::{Bench, Contender, Contest};

use crate::lanes::Watched;

fn main() -> ExitCode {
    let bench = Bench::new("watch");
    let ms = Duration::from_millis;
    let idle = bench.pick([ms(100), ms(1_000), ms(2_000), ms(5_000)]);
    let less = bench.pick([1_000, 4, 1, 1]);
    let mut contenders = Vec::new();
    for (name, watched) in Watched::ALL {
        for (io, open) in lanes::IO {
            let turn = move || Ok(lanes::idle(open, watched, idle));
            contenders.push(Contender::new(format!("idle, {io}/{name}"), turn));
        }
        let turn = move || Ok(lanes::offload(watched, less));
        contenders.push(Contender::new(format!("offload/{name}"), turn));
    }
    for (name, looped) in loops::ALL {
        let turn = move || Ok(looped(less));
        contenders.push(Contender::new(name, turn));
    }
    let contest = Contest::new(&bench, contenders, [1, 2, 5, 11], idle + REST).ending_threads();
    contest.report(|report| {
        tables::print(report);
    })
}
