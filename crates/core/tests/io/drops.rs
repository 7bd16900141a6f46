//! What a job drops may spawn: a pooled connection returns to its pool in a task. That
//! task does I/O, so it must be the I/O lane's, in whatever way the job ends.

use crate::dropping::{WAYS, end_of};
use crate::support::{self};
use twolane_core::in_cpu_context;

/// A job's thread drops what the job has captured. What its destructor spawns would be the CPU
/// lane's in that lane's own runtime, and would wait there for the end of all that computes.
#[test]
fn what_a_job_drops_spawns_on_the_io_lane() {
    for (way, end) in WAYS {
        println!("{way}");
        let end = end_of(|lanes, probe, is_dropped| {
            end(lanes, Box::new(probe), is_dropped);
        });
        assert!(end.dropped_on.starts_with("cpu-"), "{end:?}");
        assert_eq!(end.spawned_on, "io");
    }
}

/// The wrapper is for its polls, not for its end.
#[test]
fn what_was_in_the_cpu_context() {
    let end = end_of(|lanes, probe, _| {
        let (lasts, polled) = support::lasts(probe);
        let task = lanes.cpu.spawn(in_cpu_context(lasts));
        polled.recv().unwrap();
        drop(task);
    });
    assert_eq!(end.spawned_on, "io");
}
