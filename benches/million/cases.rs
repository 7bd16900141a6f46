//! The cases, for any lane.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use tokio::runtime::Runtime;

use twolane_benches::cores;

use crate::lane::{Closures, Futures, Lane};
use crate::lot::Lot;
use crate::meter::{Measured, Meter};

/// How long one sleeps.
pub const SLEEP: Duration = Duration::from_secs(1);

/// A job of 16 bytes.
type Job = (u64, u64);

fn jobs(count: usize) -> impl ExactSizeIterator<Item = Job> {
    (0..count).map(|n| (n as u64, 2 * n as u64))
}

fn compute((a, b): Job) -> u64 {
    a + b
}

/// Each thread of a lane in a job that waits.
struct Gate(Arc<Barrier>);

impl Gate {
    fn close(lane: &impl Lane) -> Self {
        let gate = Arc::new(Barrier::new(cores() + 1));
        for _ in 0..cores() {
            let gate = gate.clone();
            lane.run(move || {
                // Here, and on again.
                gate.wait();
                gate.wait();
            });
        }
        gate.wait();
        Self(gate)
    }

    fn open(self) {
        self.0.wait();
    }
}

/// Closures behind jobs that hold all threads.
pub fn queued(io: &Runtime, lane: &impl Closures, count: usize) -> Measured {
    let gate = Gate::close(lane);
    let mut meter = Meter::start(count);
    let mut handles = Vec::with_capacity(count);
    for job in jobs(count) {
        handles.push(lane.closure(move || compute(job)));
    }
    meter.all_submitted();
    meter.all_wait();
    gate.open();
    await_all(io, lane, handles);
    meter.end()
}

/// Futures that have been polled and wait to be woken.
pub fn parked(io: &Runtime, lane: &impl Futures, count: usize) -> Measured {
    // So that all threads are there.
    Gate::close(lane).open();
    let mut meter = Meter::start(count);
    let lot = Lot::new(count);
    let mut handles = Vec::with_capacity(count);
    for (place, job) in jobs(count).enumerate() {
        handles.push(lane.future(async move {
            lot.park(place).await;
            compute(job)
        }));
    }
    meter.all_submitted();
    lot.wait_until_full();
    meter.all_wait();
    lot.open();
    await_all(io, lane, handles);
    meter.end()
}

/// Futures that sleep.
pub fn sleeping(io: &Runtime, lane: &impl Futures, count: usize) -> Measured {
    Gate::close(lane).open();
    let mut meter = Meter::start(count);
    let mut handles = Vec::with_capacity(count);
    for job in jobs(count) {
        handles.push(lane.future(async move {
            tokio::time::sleep(SLEEP).await;
            compute(job)
        }));
    }
    meter.all_submitted();
    await_all(io, lane, handles);
    meter.end()
}

fn await_all<L: Lane>(io: &Runtime, _: &L, handles: Vec<L::Handle>) {
    let count = handles.len();
    let sum = io.block_on(async {
        let mut sum = 0;
        for handle in handles {
            sum += L::output(handle).await;
        }
        sum
    });
    check(count, sum);
}

fn check(count: usize, sum: u64) {
    assert_eq!(sum, jobs(count).map(compute).sum::<u64>());
}
