//! Does the watch show what users feel? A service with one handler that computes, and `/health`
//! asked beside it.
//!
//! Each on a runtime of two workers and on one of the current thread:
//!
//! - *lag*: the handler computes for 20 ms, fifteen times a second, or for 60 ms, five times. The p99
//!   of the lag that the watch shows, beside that of `/health` as a client measures it, from when
//!   the request was due;
//! - *found*: handlers of 15 to 30 ms, at a threshold of 10 or 25 ms. How many requests there were,
//!   and how many stalls were reported, of that route and of others.
//!
//! ```text
//! cargo bench -p twolane-benches --bench p99
//! ```

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::routing::get;
use axum::serve::ListenerExt;
use hdrhistogram::Histogram;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use twolane::watch::{Lag, Watch, WatchLayer};
use twolane_benches::findings::empty_histogram;
use twolane_benches::tail::work::Work;
use twolane_benches::{
    Bench, Column, Contender, Contest, Sample, current_thread_runtime, io_runtime, tail,
};

const SLOW: &str = "/slow";

#[derive(Clone, Copy)]
struct Case {
    is_multi_thread: bool,
    /// What the handler computes.
    handler: Duration,
    per_second: f64,
    threshold: Duration,
    counted: Duration,
}

fn main() -> ExitCode {
    let bench = Bench::new("p99");
    let ms = Duration::from_millis;
    let counted = ms(bench.pick([200, 2_000, 10_000, 60_000]));
    let per_ms = Work::calibrated(ms(10)).times(0.1);
    let cases = [
        ("idle", 0, 0.0, 25),
        ("lag, 20 ms 15 times a second", 20, 15.0, 25),
        ("lag, 60 ms 5 times a second", 60, 5.0, 25),
        ("found, 15 ms at 10", 15, 5.0, 10),
        ("found, 20 ms at 10", 20, 5.0, 10),
        ("found, 26 ms at 10", 26, 5.0, 10),
        ("found, 30 ms at 25", 30, 5.0, 25),
    ];
    let mut contenders = Vec::new();
    for (name, handler, per_second, threshold) in cases {
        for (flavour, is_multi_thread) in [("two workers", true), ("current thread", false)] {
            let case = Case {
                is_multi_thread,
                handler: ms(handler),
                per_second,
                threshold: ms(threshold),
                counted,
            };
            let turn = move || Ok(case.run(per_ms));
            contenders.push(Contender::new(format!("{name}, {flavour}"), turn));
        }
    }
    let contest = Contest::new(&bench, contenders, [1, 1, 3, 5], counted + tail::REST);
    contest.report(|report| {
        report.table(
            "the lag that the watch shows, and /health, ms; requests to the handler, and stalls that were reported",
            "",
            &[
                Column::pooled("lag p50", "lag", 0.5),
                Column::pooled("p99", "lag", 0.99),
                Column::pooled("/health p50", "health", 0.5),
                Column::pooled("p99", "health", 0.99),
                Column::sum("handled", "handled"),
                Column::sum("reported", "reported"),
                Column::sum("false", "false"),
            ],
        );
        for (name, ..) in &cases[1..3] {
            for flavour in ["two workers", "current thread"] {
                let name = format!("{name}, {flavour}");
                let [lag, health] = ["lag", "health"].map(|of| report.found.pooled_ms(&name, of, 0.99));
                let ratio = format!("p99_lag_over_health_{}", name.replace([',', ' '], "_"));
                report.put(ratio, twolane_benches::Ratio::once(lag / health));
            }
        }
    })
}

impl Case {
    fn run(self, of_ms: Work) -> Sample {
        let io = match self.is_multi_thread {
            true => io_runtime(2),
            false => current_thread_runtime(),
        };
        let lags = Arc::new(Mutex::new(empty_histogram()));
        let stalls = Arc::new(Mutex::new((0, 0)));
        let (of_probes, of_stalls) = (lags.clone(), stalls.clone());
        let watch = Watch::new()
            .threshold(self.threshold)
            .on_probe(move |lag: Lag| {
                let nanos = lag.waited().as_nanos() as u64;
                of_probes.lock().unwrap().saturating_record(nanos);
            })
            .on_stall(move |stall| {
                let mut stalls = of_stalls.lock().unwrap();
                match stall.culprit() {
                    Some(SLOW) => stalls.0 += 1,
                    _ => stalls.1 += 1,
                }
            });
        let watcher = watch.start(io.handle()).unwrap();
        let work = of_ms.times(self.handler.as_secs_f64() * 1e3);
        let (handled, health) = serve(&io, work, |server| {
            // Until the watch knows the workers, and has a socket of its own.
            let begun = Instant::now() + self.counted.min(Duration::from_secs(2));
            let end = begun + self.counted;
            let slow = thread::spawn(move || ask(server, SLOW, self.per_second, begun, end));
            let health = thread::spawn(move || ask(server, "/health", 200.0, begun, end));
            tail::sleep_until(begun);
            *lags.lock().unwrap() = empty_histogram();
            *stalls.lock().unwrap() = (0, 0);
            let handled = slow.join().unwrap();
            let health = health.join().unwrap();
            // The last report comes a look later.
            thread::sleep(Duration::from_millis(300));
            (handled, health)
        });
        drop(watcher);
        let (reported, others) = *stalls.lock().unwrap();
        let mut sample = Sample::default();
        sample.put("handled", "", handled.len() as f64);
        sample.put("reported", "", f64::from(reported));
        sample.put("false", "", f64::from(others));
        sample.put_latencies("lag", lags.lock().unwrap().clone());
        sample.put_latencies("health", health);
        sample
    }
}

fn serve<T: Send + 'static>(
    io: &Runtime,
    work: Work,
    clients: impl FnOnce(SocketAddr) -> T + Send,
) -> T {
    let by_route = WatchLayer::new(|request: &Request| {
        let route = request.extensions().get::<MatchedPath>();
        route.map_or("no route".into(), |route| route.as_str().to_owned().into())
    });
    let app: Router = Router::new()
        .route(SLOW, get(async move || work.run()))
        .route("/health", get(async || "ok"))
        .route_layer(by_route);
    let (stop, stopped) = oneshot::channel::<()>();
    let (tell, address) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let clients = scope.spawn(move || {
            let found = clients(address.recv().unwrap());
            drop(stop);
            found
        });
        io.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
            let server = tokio::spawn(axum::serve(listener, app).into_future());
            drop(stopped.await);
            server.abort();
        });
        clients.join().unwrap()
    })
}

/// So many requests a second, one after the other on one connection, each counted from when it was
/// due. Those before `begun` do not count.
fn ask(
    server: SocketAddr,
    path: &str,
    per_second: f64,
    begun: Instant,
    end: Instant,
) -> Histogram<u64> {
    if per_second == 0.0 {
        return empty_histogram();
    }
    let mut connection = TcpStream::connect(server).unwrap();
    connection.set_nodelay(true).unwrap();
    let every = Duration::from_secs_f64(1.0 / per_second);
    let asked = tail::ask_each(every, begun, end, || {
        write!(connection, "GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
        let (mut answer, mut length) = ([0; 1024], 0);
        while !answer[..length].windows(4).any(|end| end == b"\r\n\r\n") {
            length += connection.read(&mut answer[length..])?;
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"));
        Ok::<_, std::io::Error>(())
    });
    asked.unwrap()
}
