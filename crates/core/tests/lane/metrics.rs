//! How long did it all take? (The counters, call by
//! call: `model`. Under fire: `storm`. That each wait and step is counted: `export`.)

use crate::support::wait::wait_until;
use crate::support::{Stuck, lanes, lanes_with, nothing};

#[test]
fn nothing_is_timed_unless_the_lane_is_told_to() {
    let lanes = lanes(1);
    lanes.cpu.spawn_cpu(nothing).wait().unwrap();
    let now = lanes.cpu.handle().metrics();
    assert_eq!((now.queue_wait.count(), now.run_time.count()), (0, 0));
    assert!(now.busy_time().is_zero());
}

/// Each of them. A job that waits while this thread counts 3 ms is in the counters with
/// as much, and so is the step that it waits for.
#[test]
fn waits_and_steps_are_timed() {
    use std::time::Duration;
    let (cpu, _lanes) = lanes_with(1, |builder| builder.histograms(true)).and_handle();
    assert_eq!(cpu.metrics().queue_wait.count(), 0);
    assert_eq!(cpu.metrics().run_time.quantile(0.5), None);
    let running = Stuck::start(&cpu);
    let queued = cpu.spawn_cpu(nothing);
    let pause = std::time::Instant::now();
    wait_until(|| pause.elapsed() >= Duration::from_millis(3));
    running.end();
    queued.wait().unwrap();
    let metrics = cpu.metrics();
    assert_eq!(metrics.queue_wait.count(), 2);
    let longest = metrics.queue_wait.quantile(1.0).unwrap();
    assert!(longest >= Duration::from_millis(3), "{metrics:?}");
    let slowest = metrics.run_time.quantile(1.0).unwrap();
    assert!(slowest >= Duration::from_millis(3), "{metrics:?}");
    assert_eq!(metrics.run_time.count(), 2);
    let counts = metrics.run_time.buckets().map(|(_, count)| count);
    assert_eq!(counts.sum::<u64>(), metrics.run_time.count());
}
