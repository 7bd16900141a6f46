//! `enable_driver_wakeups`: how many I/O workers does the end of a job wake?

use std::sync::mpsc;

use tokio::runtime::Runtime;

use crate::support::wait::wait_until;
use crate::support::{Lanes, Stuck, lanes_with, with_both};

const TRIPS: u64 = 20;

fn parks_and_unparks(io: &Runtime) -> Vec<u64> {
    let metrics = io.metrics();
    let of = |worker| metrics.worker_park_unpark_count(worker);
    (0..metrics.num_workers()).map(of).collect()
}

fn wait_until_all_are_parked(io: &Runtime) {
    wait_until(|| parks_and_unparks(io).iter().all(|count| count % 2 == 1));
}

#[test]
#[ignore = "counts what Tokio does: .ci/nightly"]
fn a_job_that_ends_wakes_one_worker() {
    with_both(|backend| {
        let Lanes { cpu, io } = lanes_with(backend, 1, |builder| builder.enable_driver_wakeups());
        let (tell, jobs) = mpsc::channel();
        let handle = cpu.handle();
        let awaits = io.spawn(async move {
            for _ in 0..TRIPS {
                let (task, let_go) = Stuck::start(&handle).split();
                tell.send(let_go).unwrap();
                task.await.unwrap();
            }
        });
        for let_go in jobs {
            wait_until_all_are_parked(&io);
            let_go.send(()).unwrap();
        }
        io.block_on(awaits).unwrap();
        wait_until_all_are_parked(&io);
        // A wake-up from a foreign thread unparks two.
        let woken: u64 = parks_and_unparks(&io).iter().map(|count| count / 2).sum();
        assert!(
            (TRIPS..TRIPS * 3 / 2).contains(&woken),
            "{TRIPS} jobs woke {woken} workers"
        );
    });
}
