//! What does a job cost while a worker waits inside another?
//!
//! A worker that waits in `rayon::join` sleeps where rayon's idle workers sleep, and
//! rayon wakes its sleeper with the lowest number. Where that was the waiting one, it
//! took each drain job (what makes a worker active), could not run it on top of its
//! own job, and gave it to the control thread, which spawned it again: to the same
//! worker, over and over, with a pause in between. Each job that came while
//! the `join` lasted paid for several such trips, hundreds on a busy machine, and
//! waited for as many pauses, although another worker was idle. Drain jobs that go to
//! rayon at large while a worker of the lane waits in a job bring that back.

use crate::joins::Waiting;
use crate::support::wait::wait_until;
use crate::support::{lanes_with, nothing};
use crate::threads;

const SMALL_JOBS: u64 = 200;
/// One for four jobs. It was three or more for each.
const MOST_TRIPS: u64 = SMALL_JOBS / 4;

/// How often the control thread of the lane of that name went to sleep.
fn trips(lane: &str) -> u64 {
    let name = format!("{lane}-control");
    // A thread takes on its name when it first runs.
    wait_until(|| !threads::sleeps(&name).is_empty());
    threads::sleeps(&name).into_values().sum()
}

#[test]
#[ignore = "counts what the kernel does: .ci/nightly"]
fn jobs_beside_a_join_do_not_go_by_the_control_thread() {
    for (lane, workers) in [("three", 3), ("four", 4)] {
        let lanes = lanes_with(workers, |it| it.thread_name(lane));
        let waiting = Waiting::on_worker_0(&lanes, lane);
        let before = trips(lane);
        let (mut jobs, mut taken) = (0, 0);
        while jobs < SMALL_JOBS && taken < MOST_TRIPS {
            // A worker looks around before it sleeps, the waiting one as well. While all
            // are asleep rayon has to choose.
            let is_asleep = |n| threads::is_asleep(&format!("{lane}-{n}"));
            wait_until(|| (0..workers).all(is_asleep));
            lanes.cpu.spawn_cpu(nothing).wait().unwrap();
            jobs += 1;
            taken = trips(lane) - before;
        }
        waiting.end();
        assert!(
            taken < MOST_TRIPS,
            "{workers} workers: the control thread was woken {taken} times for {jobs} jobs"
        );
    }
}
