//! One slice of one contender, seen from outside the cgroup.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cgroup::{Cgroup, Throttling};
use crate::contender::Contender;
use crate::process::{Process, number};
use crate::support::others::Others;
use crate::tail::client::{self, Latencies, Schedule};
use crate::tail::work::Work;
use crate::tail::{findings, sleep_until};

pub struct Settings {
    pub cores: usize,
    pub work: Work,
    pub measured: Duration,
}

pub struct Slice {
    pub latencies: Latencies,
    /// NaN where there are no jobs.
    pub jobs_per_s: f64,
    /// In this time.
    pub throttling: Throttling,
    pub measured: Duration,
    /// What `available_parallelism` said inside.
    pub available: u64,
    /// How many threads computed.
    pub threads: u64,
    /// The fraction of the machine that others had.
    pub others: f64,
}

impl findings::Slice for Slice {
    fn latencies(&self) -> &Latencies {
        &self.latencies
    }
}

pub fn run(contender: Contender, cgroup: &Cgroup, settings: &Settings) -> Slice {
    let mut inside = Process::start(contender, cgroup, settings);
    let listening = inside.order("listen");
    let port = u16::try_from(number(&listening, "port")).unwrap();
    let stream = client::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).unwrap();
    let threads = inside.number("load", "threads");

    let schedule = Schedule::starting(Instant::now(), settings.measured);
    let client = thread::Builder::new()
        .name("client".to_owned())
        .spawn(move || client::ask(stream, schedule))
        .unwrap();
    sleep_until(schedule.warm);
    let others = Others::since_now([inside.id()]);
    let throttled_before = cgroup.throttling();
    let before = inside.order("count");
    sleep_until(schedule.end);
    let throttling = cgroup.throttling().since(throttled_before);
    let others = others.fraction();
    let after = inside.order("count");
    let latencies = client.join().unwrap().unwrap();

    Slice {
        latencies,
        jobs_per_s: if threads == 0 {
            f64::NAN
        } else {
            jobs_per_s(&before, &after)
        },
        throttling,
        measured: settings.measured,
        available: number(&listening, "available"),
        threads,
        others,
    }
}

fn jobs_per_s(before: &Value, after: &Value) -> f64 {
    let between = |field| (number(after, field) - number(before, field)) as f64;
    between("jobs") * 1e9 / between("at_ns")
}
