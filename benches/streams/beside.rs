//! An echo on the I/O lane while the items run.

use std::thread;
use std::time::{Duration, Instant};

use twolane_benches::Sample;
use twolane_benches::tail::client::{self, Schedule};
use twolane_benches::tail::echo::EchoLane;

use crate::items::{Items, Kind};
use crate::lanes::{IO_WORKERS, Lanes};
use crate::ways::Way;

/// One stream after the other runs until the slice is over.
pub fn measure(way: Option<Way>, kind: Kind, items: Items, measured: Duration) -> Sample {
    let io = EchoLane::start(IO_WORKERS);
    let lanes = Lanes::new(io.handle().clone());
    let connection = client::connect(io.address()).unwrap();
    let schedule = Schedule::starting(Instant::now(), measured);
    let client = thread::spawn(move || client::ask(connection, schedule));
    let mut done = 0;
    if let Some(way) = way {
        while Instant::now() < schedule.end {
            way.run(&lanes, kind, items);
            done += items.count;
        }
    }
    let mut sample = client.join().unwrap().unwrap().sample();
    sample.put("done", "items", done as f64);
    sample
}
