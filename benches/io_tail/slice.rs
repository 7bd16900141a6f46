//! One slice of one contender: everything built, measured, and gone again.

use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use twolane_benches::tail::client::{self, Schedule};
use twolane_benches::tail::echo::EchoLane;
use twolane_benches::tail::lanes::Lane;
use twolane_benches::tail::load::Load;
use twolane_benches::tail::sleep_until;
use twolane_benches::tail::work::Work;
use twolane_benches::{Sample, cores};

use crate::spinners::Spinners;

/// Runs it, or says why it can't be run here.
pub fn run(
    name: &str,
    open: impl Fn(&Handle) -> Option<Lane>,
    work: Work,
    measured: Duration,
) -> Result<Sample, String> {
    let _spinners = match name {
        "awake" => Some(Spinners::start()?),
        _ => None,
    };
    let io = EchoLane::start(cores());
    let stream = client::connect(io.address()).unwrap();
    let load = open(io.handle()).map(|lane| Load::start(lane, work));
    let completed = || load.as_ref().map_or(0, Load::completed);

    let schedule = Schedule::starting(Instant::now(), measured);
    let client = thread::spawn(move || client::ask(stream, schedule));
    sleep_until(schedule.warm);
    let (from, jobs_before) = (Instant::now(), completed());
    sleep_until(schedule.end);
    let (jobs, took) = (completed() - jobs_before, from.elapsed());
    let mut sample = client.join().unwrap().unwrap().sample();
    if let Some(load) = load {
        load.stop();
        sample.put("jobs_per_s", "1/s", jobs as f64 / took.as_secs_f64());
    }
    Ok(sample)
}
