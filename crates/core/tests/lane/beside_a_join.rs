//! Jobs that come while a worker waits inside another job: none starts on top
//! of that one. (How often they wake the control thread is counted in `tests/alone`.)

use crate::joins::Waiting;
use crate::support::{Stuck, lanes, thread_name};

#[test]
fn jobs_beside_a_join_run_on_the_workers_that_are_left() {
    for workers in [3, 4] {
        let lanes = lanes(workers);
        let waiting = Waiting::on_worker_0(&lanes, "cpu");
        for _ in 0..200 {
            let on = lanes.cpu.spawn_cpu(thread_name).wait().unwrap();
            assert!(on != "cpu-0", "a job started inside another");
            assert!(on != waiting.thief, "a job started inside another's child");
        }
        waiting.end();
    }
}

/// Where no worker is left, a job waits for the end of the `join`, and runs then.
#[test]
fn a_job_that_no_worker_is_left_for_runs_after_the_join() {
    let lanes = lanes(2);
    for _ in 0..20 {
        let waiting = Waiting::on_worker_0(&lanes, "cpu");
        let queued = lanes.cpu.spawn_cpu(thread_name);
        waiting.end();
        queued.wait().unwrap();
    }
    // All of the lane's workers are there again.
    let all: Vec<_> = (0..2).map(|_| Stuck::start(lanes.cpu.handle())).collect();
    all.into_iter().for_each(Stuck::end);
}
