//! The process inside the cgroup: the I/O lane, and the load beside it.
//!
//! It does as it is told, a line at a time, and answers with a line of JSON
//! (`process.rs` is the other end). It ends when its stdin closes.

use std::io::{BufRead, Write};
use std::thread::available_parallelism;
use std::time::Instant;

use serde_json::{Value, json};

use crate::contender::Contender;
use crate::tail::echo::EchoLane;
use crate::tail::load::Load;
use crate::tail::work::Work;

#[derive(clap::Args)]
pub struct Args {
    /// Be the process inside the cgroup, for this contender
    #[arg(long, hide = true)]
    pub inside: Option<String>,
    /// The steps of a job
    #[arg(long, hide = true, default_value_t = 1)]
    pub steps: u64,
    /// The cores of the machine, which can't be seen from inside
    #[arg(long, hide = true, default_value_t = 1)]
    pub cores: usize,
}

pub fn serve(contender: Contender, args: &Args) -> ! {
    let start = Instant::now();
    let mut io = None;
    let mut load = None;
    for order in std::io::stdin().lock().lines().map_while(Result::ok) {
        match order.as_str() {
            // The first, since it comes when this process has been moved:
            // only now does whoever asks for the quota find it.
            "listen" => {
                let echo = io.insert(EchoLane::start(args.cores));
                say(&json!({
                    "port": echo.address().port(),
                    "available": available_parallelism().map_or(1, usize::from),
                }));
            }
            "load" => {
                let io = io.as_ref().expect("`listen` comes before `load`");
                let lane = contender.lane(io.handle(), args.cores);
                say(&json!({"threads": lane.as_ref().map_or(0, |lane| lane.threads)}));
                load = lane.map(|lane| Load::start(lane, Work { steps: args.steps }));
            }
            // With its own clock: the answer may wait for the next period.
            "count" => say(&json!({
                "jobs": load.as_ref().map_or(0, Load::completed),
                "at_ns": start.elapsed().as_nanos() as u64,
            })),
            _ => panic!("no such order: {order}"),
        }
    }
    // Whatever still runs ends with the process.
    std::process::exit(0)
}

fn say(answer: &Value) {
    println!("{answer}");
    let _ = std::io::stdout().flush();
}
