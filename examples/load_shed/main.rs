//! Load shedding: an HTTP service whose requests compute, at twice the load that
//! it can serve.
//!
//! # The question
//!
//! A service has one expensive step in a request (`/work`, 10 ms of hashing) and
//! a cheap one that must not suffer from it (`/health`). More requests come than
//! its cores can serve. Which of them are answered, when, and what does the load
//! balancer that asks `/health` see?
//!
//! # What it shows
//!
//! The same axum service four ways, each a process of its own:
//!
//! - `twolane`: the work on the CPU lane, with a limited queue
//!   ([`Builder::queue_limit`](twolane::Builder::queue_limit)). A full queue is
//!   answered 503 at once: by a tower layer and `tower::load_shed`
//!   (`admission.rs`), or by hand in one line (`service.rs`, route `/plain`). A
//!   client that has gone takes its work with it.
//! - `inline`: the work in the handler.
//! - `spawn_blocking`: the work in `tokio::task::spawn_blocking`.
//! - `spawn_blocking_limited`: that behind tower's `concurrency_limit` and
//!   `load_shed`; once with as many permits as twolane's queue, once with one
//!   per thread.
//!
//! Requests are sent when they are due, whatever has been answered by then, and
//! latency counts from there. A client gives up after a second. It is asked
//! afterwards whether twolane's service sheds nothing while it is idle, and
//! whether clients that went away still hold permits of the queue.
//!
//! # What it does not measure
//!
//! A network, and the service alone: the clients are on this machine and take
//! their share of its cores. With `wrk` instead of them: `measure`, next to this
//! file.
//!
//! # How to run it
//!
//! ```text
//! cargo run --release --example load_shed              # a minute and a half
//! cargo run --release --example load_shed -- --quick   # 20 seconds
//! cargo run --release --example load_shed -- --serve twolane --port 8080
//! ```

mod admission;
mod checks;
mod child;
mod client;
mod compare;
mod contender;
mod health;
mod load;
mod others;
mod service;
mod table;
mod work;

use std::process::ExitCode;

use clap::Parser;
use contender::{Contender, Server};
use tower::BoxError;
use work::Work;

#[derive(Parser)]
#[command(about = "A service whose requests compute, at twice the load that it can serve")]
struct Args {
    /// Serve on 127.0.0.1 until killed, instead of comparing them all
    #[arg(long, value_name = "CONTENDER")]
    serve: Option<Contender>,
    /// The port to serve on; 0: any, which is printed
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The work of a request, in slices of half a millisecond or so; calibrated to
    /// 10 ms unless given
    #[arg(long)]
    slices: Option<u32>,
    /// Requests that may be taken on at a time, where there is a limit; 8 per
    /// thread of the CPU lane unless given
    #[arg(long)]
    limit: Option<usize>,
    /// A few seconds for each contender
    #[arg(long)]
    quick: bool,
}

fn main() -> Result<ExitCode, BoxError> {
    let args = Args::parse();
    let work = args.slices.map_or_else(Work::calibrated, Work::of);
    let threads = twolane::CpuRuntime::default_threads()?;
    let limit = args.limit.unwrap_or(8 * threads);
    match args.serve {
        Some(contender) => {
            let server = Server {
                contender,
                work,
                limit,
            };
            server.run(args.port)?;
            Ok(ExitCode::SUCCESS)
        }
        None => compare::all(work, threads, limit, args.quick),
    }
}
