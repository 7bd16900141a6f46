//! One slice of one contender: everything built, measured, and gone again.

use std::thread;
use std::time::{Duration, Instant};

use crate::contender::Contender;
use crate::spinners::Spinners;
use crate::support::others::Others;
use crate::support::threads::Threads;
use crate::tail::client::{self, Latencies, Schedule};
use crate::tail::echo::EchoLane;
use crate::tail::findings;
use crate::tail::load::Load;
use crate::tail::sleep_until;
use crate::tail::work::Work;

pub struct Settings {
    pub cores: usize,
    pub work: Work,
    pub measured: Duration,
    pub nice: Option<u8>,
}

pub struct Slice {
    pub latencies: Latencies,
    /// NaN where there are no jobs.
    pub jobs_per_s: f64,
    /// The fraction of the machine that others had.
    pub others: f64,
}

impl findings::Slice for Slice {
    fn latencies(&self) -> &Latencies {
        &self.latencies
    }
}

/// Runs it, or says why it can't be run here.
pub fn run(contender: Contender, settings: &Settings) -> Result<Slice, String> {
    let threads_before = Threads::now();
    let spinners = match contender {
        Contender::Awake => Spinners::start(settings.cores)?,
        _ => Spinners::none(),
    };
    let io = EchoLane::start(settings.cores);
    let stream = client::connect(io.address()).unwrap();
    let load = contender
        .lane(io.handle(), settings)
        .map(|lane| Load::start(lane, settings.work));
    let completed = || load.as_ref().map_or(0, Load::completed);

    let schedule = Schedule::starting(Instant::now(), settings.measured);
    let client = thread::Builder::new()
        .name("client".to_owned())
        .spawn(move || client::ask(stream, schedule))
        .unwrap();
    sleep_until(schedule.warm);
    let others = Others::since_now(spinners.ids());
    let (from, jobs_before) = (Instant::now(), completed());
    sleep_until(schedule.end);
    let (jobs, took) = (completed() - jobs_before, from.elapsed());
    let others = others.fraction();
    let latencies = client.join().unwrap().unwrap();

    let jobs_per_s = match load {
        Some(load) => {
            load.stop();
            jobs as f64 / took.as_secs_f64()
        }
        None => f64::NAN,
    };
    drop(io);
    drop(spinners);
    threads_before.wait_for_others_to_end();
    Ok(Slice {
        latencies,
        jobs_per_s,
        others,
    })
}
