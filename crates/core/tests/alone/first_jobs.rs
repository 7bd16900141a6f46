//! How often do the first jobs of a priority wake the control thread?
//!
//! Never. It was woken by each job that was queued
//! before the threads of its priority had started. A million first `Low` jobs from sixteen threads
//! cost it 1.5 s of CPU time, beside the I/O lane and at its weight.

use std::sync::Barrier;

use twolane_core::Priority;

use crate::support::wait::wait_until;
use crate::support::{Stuck, lanes_with, nothing};
use crate::threads;

const SUBMITTERS: usize = 16;
const JOBS: usize = 100;

#[test]
#[ignore = "counts what the kernel does: .ci/nightly"]
fn the_first_jobs_of_a_priority_do_not_wake_the_control_thread() {
    let name = "first";
    let lanes = lanes_with(1, |lane| lane.thread_name(name));
    let low = lanes.cpu.handle().with_priority(Priority::Low);
    let control = format!("{name}-control");
    let wakes = || {
        wait_until(|| threads::is_asleep(&control));
        threads::sleeps(&control).into_values().sum::<u64>()
    };
    let before = wakes();
    // The thread of `Low` is kept, so that all jobs are queued behind the first one.
    let first = Stuck::start(&low);
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
    first.end();
    low.spawn_cpu(nothing).wait().unwrap();
    assert_eq!(wakes(), before);
}
