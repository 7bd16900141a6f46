//! The process inside the cgroup: the I/O lane, and the load beside it.
//!
//! It takes orders, a line each, and answers each with a line of two numbers as JSON
//! (`process.rs` is the other end). It ends when its stdin closes.

use std::io::{BufRead, Write};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use twolane_benches::tail::echo::EchoLane;
use twolane_benches::tail::load::Load;
use twolane_benches::tail::work::Work;

use crate::open;

/// Jobs in flight for each core of the machine, as in `io_tail`.
const IN_FLIGHT: usize = 4;

#[derive(Serialize, Deserialize)]
pub struct Role {
    pub contender: String,
    /// Of a job.
    pub work: Work,
    /// Of the machine, which can't be seen from inside.
    pub cores: usize,
}

pub fn serve(role: &Role) -> ! {
    let start = Instant::now();
    let mut io = None;
    let mut load = None;
    for order in std::io::stdin().lock().lines().map_while(Result::ok) {
        match order.as_str() {
            // The first, since it comes when this process has been moved: only now does
            // what asks for the quota find it.
            "listen" => {
                let echo = io.insert(EchoLane::start(role.cores));
                answer([u64::from(echo.address().port()), 0]);
            }
            "load" => {
                let io = io.as_ref().expect("`listen` comes before `load`");
                let jobs = IN_FLIGHT * role.cores;
                let lane = open(&role.contender, io.handle(), role.cores, jobs);
                answer([lane.as_ref().map_or(0, |lane| lane.threads) as u64, 0]);
                load = lane.map(|lane| Load::start(lane, role.work));
            }
            // With its own clock: the answer may wait for the next period.
            "count" => answer([
                load.as_ref().map_or(0, Load::completed),
                start.elapsed().as_nanos() as u64,
            ]),
            _ => panic!("no such order: {order}"),
        }
    }
    // What still runs ends with the process.
    std::process::exit(0)
}

fn answer(numbers: [u64; 2]) {
    println!("{}", serde_json::json!(numbers));
    let _ = std::io::stdout().flush();
}
