//! How often, for how long and why do requests of the I/O side stall when it shares a pooled
//! HTTP client with CPU jobs? (S1)
//!
//! Two Tokio runtimes, `io` and `cpu`, two workers each, share one pooled `reqwest::Client`. A
//! server answers each request after 50 ms. Both sides submit ten requests, 10 ms apart; after its
//! response a `cpu` task keeps its thread for 200 ms. Why do some of the `io` side's requests take
//! about a second, though its runtime has nothing else to do? (Published as *tokio-debug* by the
//! authors of CeresDB in 2023; the example `tokio_debug` has it and the cure in one file.)
//!
//! Seven contenders, each in two variants: the CPU job sleeps on its thread, as published
//! (`sleep`), or computes (`burn`). A request of the I/O side that takes more than 100 ms has
//! stalled.
//!
//! - (a) `alone`: the io side alone,
//! - (b) `shared_client`: two runtimes that share one client, as published,
//! - (c) `unpooled`: the same with pooling switched off,
//! - (d) `two_clients`: two runtimes with a client each,
//! - (e) `connector_layer`: one client whose connects are moved to the `io` runtime,
//! - (f) `twolane_send_io`: twolane, the CPU jobs' requests by `send_io()`,
//! - (g) `twolane_send`: by plain `send()`, which a job runs inside the I/O runtime's context.
//!
//! For each request of the io side it measures how long it waited to be written, was at the server,
//! and waited to be read and polled: from its submission, its end, and what the server notes. The
//! slowest one of each contender is printed. (Whose thread held up a connection isn't seen:
//! `docs/stall.md` explains it, and the contenders differ in it.)
//!
//! And three cases in which (g) is not enough, one try a round each (`extra.rs`): a half-done
//! HTTP/2 connect and unread HTTP/2 bodies of a busy job, which another's request waits for, and a
//! job's own timeout that fires though the server answered in time.
//!
//! It fails if a request of (f) stalled that noise doesn't explain (`stalls.rs`).
//!
//! It does not measure throughput, nor what a request costs that nothing disturbs (`hop`), nor TLS,
//! DNS and real networks. Each round starts with an empty pool, as a process that has just started:
//! a pool that is warm stalls too, in other proportions.
//!
//! ```text
//! cargo bench --bench pool_stall    # 35 seconds; --full: nine minutes
//! ```

mod contender;
mod extra;
mod round;
mod server;
mod stalls;
mod world;

use std::cell::RefCell;
use std::process::ExitCode;
use std::time::Duration;

use twolane_benches::findings::empty_histogram;
use twolane_benches::{Bench, Column, Contender, Contest, Ratio, Report, Sample};

use crate::contender::{Contender as Side, name};
use crate::extra::Case;
use crate::round::Request;
use crate::server::Server;
use crate::world::Busy;

fn main() -> ExitCode {
    let bench = Bench::new("pool_stall");
    let server = Server::start().unwrap();
    let requests = RefCell::default();
    let contest = Contest::new(
        &bench,
        contenders(&server, &requests),
        [1, 2, 4, 60],
        Duration::from_secs(120),
    );
    contest.report(|report| {
        for busy in Busy::ALL {
            report.table(
                &format!("requests of the I/O side, CPU jobs {}; ms", busy.key()),
                &format!("{}/", busy.key()),
                &[
                    Column::sum("stalled", "stalled"),
                    Column::sum("of", "requests"),
                    Column::pooled("p50", "latency", 0.5),
                    Column::pooled("p99", "latency", 0.99),
                    Column::pooled("max", "latency", 1.0),
                ],
            );
        }
        for [key, title, counts] in Case::ALL.map(Case::texts) {
            let columns = [
                Column::sum(counts, "bad"),
                Column::sum("of", "tries"),
                Column::spread("took", "took"),
            ];
            report.table(&format!("{title}; ms"), &format!("{key}/"), &columns);
        }
        // A contender that is out has no figures.
        let is_in = |one: &Request| !report.found.is_out(&name(one.busy.key(), one.contender));
        let requests: Vec<_> = requests.borrow().iter().copied().filter(is_in).collect();
        stalls::print_slowest(&requests);
        report.verdict(stalls::is_good(&requests));
        ratios(report);
    })
}

fn contenders<'a>(server: &'a Server, requests: &'a RefCell<Vec<Request>>) -> Vec<Contender<'a>> {
    let mut contenders = Vec::new();
    for busy in Busy::ALL {
        for side in Side::ALL {
            let turn = move || {
                let round = round::run(side, busy, server)?;
                let stalled = round.iter().filter(|one| one.has_stalled()).count();
                let mut latencies = empty_histogram();
                for request in &round {
                    latencies.saturating_record((request.ms() * 1e6) as u64);
                }
                let mut sample = Sample::of("stalled", "requests", stalled as f64);
                sample.put("requests", "requests", round.len() as f64);
                sample.put_latencies("latency", latencies);
                requests.borrow_mut().extend(round);
                Ok(sample)
            };
            contenders.push(Contender::new(name(busy.key(), side), turn));
        }
    }
    for case in Case::ALL {
        for side in extra::CONTENDERS {
            let mut tries = 0..;
            let turn = move || case.run(side, tries.next().unwrap_or_default(), server);
            contenders.push(Contender::new(name(case.texts()[0], side), turn));
        }
    }
    contenders
}

fn ratios(report: &Report) {
    for busy in Busy::ALL {
        let p99 = |side| {
            let found = &report.found;
            found.pooled_ms(&name(busy.key(), side), "latency", 0.99)
        };
        let over_alone = Ratio::once(p99(Side::Twolane) / p99(Side::Alone));
        let ratio = format!("twolane_p99_over_alone_p99_{}", busy.key());
        report.put(ratio, over_alone);
    }
}
