//! How often, and for how long, do requests of the I/O side stall when it shares a pooled
//! HTTP client with CPU jobs? (S1)
//!
//! The contenders are those of `examples/tokio_debug`, the same code: see there for the
//! explanation, the timeline and what was observed of each connection. Two Tokio runtimes
//! share one pooled client; a server answers after 50 ms; both sides send ten requests, 10 ms
//! apart; after its response a CPU job keeps its thread for 200 ms, asleep (`sleep`, as
//! published) or computing (`burn`). A request of the I/O side that takes more than 100 ms has
//! stalled.
//!
//! - `alone`: the I/O side alone; `shared_client`: as published; `unpooled`: without pooling;
//!   `two_clients`: a client each; `connector_layer`: the connects moved to the I/O runtime;
//! - `twolane_send_io`: twolane, the jobs' requests by `send_io()`; `twolane_send`: by plain
//!   `send()`, which the rayon backend runs inside the I/O runtime's context.
//!
//! And three cases in which that context is not enough, one try a round each: a half-done
//! HTTP/2 connect and unread HTTP/2 bodies of a busy job, which another's request waits for,
//! and a job's own timeout that fires though the server answered in time.
//!
//! It does not measure what a request costs that nothing disturbs (`hop`), nor TLS, DNS and
//! real networks. Each round starts with an empty pool, as a process that has just started.
//!
//! ```text
//! cargo bench --bench pool_stall    # 90 seconds
//! ```

use std::time::Duration;

use tokio_debug::contender::Contender as Side;
use tokio_debug::extra::{self, Case};
use tokio_debug::gate::Busy;
use tokio_debug::round;
use tokio_debug::server::Server;
use twolane_benches::findings::empty_histogram;
use twolane_benches::{Bench, Column, Contender, Contest, Findings, Ratio, Report, Sample};

fn main() {
    let bench = Bench::new("pool_stall");
    let server = Server::start().unwrap();
    let server = &server;
    let mut contenders = Vec::new();
    for busy in Busy::ALL {
        for side in Side::ALL {
            let turn = move || {
                let round = round::run(side, busy, false, server);
                let round = round.map_err(|error| error.to_string())?;
                let mut latencies = empty_histogram();
                for request in &round.requests {
                    latencies.saturating_record((request.latency_ms() * 1e6) as u64);
                }
                let mut sample = Sample::default();
                sample.put("stalled", "requests", round.stalled() as f64);
                sample.put("requests", "requests", round.requests.len() as f64);
                sample.put_latencies("latency", latencies);
                Ok(sample)
            };
            contenders.push(Contender::new(name(busy.key(), side), turn));
        }
    }
    for case in Case::ALL {
        for side in extra::CONTENDERS {
            let mut nth = 0;
            let turn = move || {
                let tried = case
                    .run(side, nth, server)
                    .map_err(|error| error.to_string())?;
                nth += 1;
                let mut sample = Sample::default();
                sample.put("bad", "tries", f64::from(u8::from(tried.bad)));
                sample.put("tries", "tries", 1.0);
                sample.put("took", "ms", tried.took_ms);
                Ok(sample)
            };
            contenders.push(Contender::new(name(case.key(), side), turn));
        }
    }
    let found = bench.run(Contest {
        contenders,
        rounds: bench.rounds([1, 2, 7, 60]),
        warm_up: false,
        ends_threads: false,
        bound: Duration::from_secs(120),
    });
    let Some(found) = found else { return };

    let mut report = Report::new(bench.name, &found);
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
                Column::median("others", "others"),
            ],
        );
    }
    for case in Case::ALL {
        report.table(
            &format!("{}; ms", case.title()),
            &format!("{}/", case.key()),
            &[
                Column::sum(case.counts(), "bad"),
                Column::sum("of", "tries"),
                Column::spread("took", "took"),
            ],
        );
    }
    let p99 = |busy: Busy, side| found.pooled_ms(&name(busy.key(), side), "latency", 0.99);
    for (suffix, side) in [("shared", Side::Shared), ("twolane", Side::Twolane)] {
        let fraction = stalled(&found, side) / requests(&found, side);
        report.put(format!("{suffix}_stalled_fraction"), Ratio::once(fraction));
    }
    for busy in Busy::ALL {
        let key = busy.key();
        let ours = p99(busy, Side::Twolane);
        let over_alone = ours / p99(busy, Side::Alone);
        report.put(
            format!("twolane_p99_over_alone_p99_{key}"),
            Ratio::once(over_alone),
        );
        for peer in [
            Side::Shared,
            Side::Unpooled,
            Side::TwoClients,
            Side::Connector,
            Side::SafetyNet,
        ] {
            let ratio = Ratio::once(p99(busy, peer) / ours);
            report.put(format!("{}_p99_over_twolane_p99_{key}", peer.key()), ratio);
        }
    }
    for case in Case::ALL {
        let [plain, ours] = [Side::Shared, Side::Twolane].map(|side| name(case.key(), side));
        report.ratio(
            format!("{}_shared_over_twolane", case.key()),
            "took",
            &plain,
            &ours,
        );
    }
    report.finish();
}

fn name(case: &str, side: Side) -> String {
    format!("{case}/{}", side.key())
}

fn stalled(found: &Findings, side: Side) -> f64 {
    Busy::ALL
        .iter()
        .map(|busy| found.sum(&name(busy.key(), side), "stalled"))
        .sum()
}

fn requests(found: &Findings, side: Side) -> f64 {
    Busy::ALL
        .iter()
        .map(|busy| found.sum(&name(busy.key(), side), "requests"))
        .sum()
}
