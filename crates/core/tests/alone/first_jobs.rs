//! How often do the first jobs of a priority wake the control thread?
//!
//! The first one does, for it asks for the threads, and none of the others. It was woken by each job
//! that was queued before the threads of its priority had started. A million first `Low` jobs from
//! sixteen threads cost it 1.5 s of CPU time, beside the I/O lane and at its weight.

use std::sync::{Arc, Barrier, Mutex};

use twolane_core::Priority;

use crate::support::wait::wait_until;
use crate::support::{lanes_with, nothing};
use crate::threads;

const SUBMITTERS: usize = 16;
const JOBS: usize = 100;

#[test]
#[ignore = "counts what the kernel does: .ci/nightly"]
fn of_the_first_jobs_of_a_priority_one_wakes_the_control_thread() {
    let name = "first";
    let door = Arc::new(Mutex::new(()));
    let through = door.clone();
    let lanes = lanes_with(1, |lane| {
        let lane = lane.thread_name(name);
        lane.on_thread_start(move || drop(through.lock().unwrap()))
    });
    let low = lanes.cpu.handle().with_priority(Priority::Low);
    let control = format!("{name}-control");
    let wakes = || {
        wait_until(|| threads::is_asleep(&control));
        threads::sleeps(&control).into_values().sum::<u64>()
    };
    // The thread of `Low` does not start until all jobs are queued.
    let closed = door.lock().unwrap();
    low.spawn_cpu(nothing).detach();
    wait_until(|| !threads::sleeps("first-low-").is_empty());
    let before = wakes();
    let all_are_there = Barrier::new(SUBMITTERS);
    std::thread::scope(|scope| {
        for _ in 0..SUBMITTERS {
            scope.spawn(|| {
                all_are_there.wait();
                (0..JOBS).for_each(|_| low.spawn_cpu(nothing).detach());
            });
        }
    });
    assert_eq!(wakes(), before);
    drop(closed);
    let all = (1 + SUBMITTERS * JOBS) as u64;
    wait_until(|| low.metrics().completed == all);
}
