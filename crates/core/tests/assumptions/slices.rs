//! Does a thread get the slice that it asks for by way of a deadline that keeps its policy?
//!
//! Relied on in `crates/giveway/src/linux.rs` (`set_slice`): Linux takes the run time of a deadline as
//! the length of a slice if `SCHED_FLAG_KEEP_POLICY` is set, and thread-priority passes that
//! flag on, of which it knows nothing. Without it the threads of the lane have the kernel's
//! slice, and a thread of the I/O lane that wakes up waits for milliseconds until one has used
//! its own. Nothing reports this: the call may be refused on any system.

use std::fs;
use std::time::Duration;

use crate::support::{Lanes, lanes, lanes_with, must_run};
use giveway::Weight;
use rustix::process::getpriority_process;
use twolane_core::{CpuRuntime, Niceness, Priority};

const ALL: [Priority; 3] = [Priority::High, Priority::Normal, Priority::Low];

/// The kernel's slice for this thread, in milliseconds. Kernels without debug information in
/// `/proc`, or older than 6.6, do not tell.
fn my_slice() -> Option<f64> {
    let sched = fs::read_to_string("/proc/thread-self/sched").ok()?;
    let line = sched.lines().find(|line| line.starts_with("se.slice "))?;
    let nanos: f64 = line.rsplit_once(':')?.1.trim().parse().ok()?;
    Some(nanos / 1e6)
}

/// So a thread of the I/O lane that wakes up does not wait for the end of a longer one.
#[test]
fn a_lane_has_slices_of_its_own() {
    let Some(kernels) = my_slice().filter(|_| takes_slices()) else {
        let why = "this kernel has no slices, does not tell, or refuses them";
        return must_run::not_run("slices", why);
    };
    let Lanes { cpu, io } = lanes(1);
    let slices = |cpu: &CpuRuntime| {
        ALL.map(|priority| {
            let handle = cpu.handle().with_priority(priority);
            handle.spawn_cpu(my_slice).wait().unwrap().unwrap()
        })
    };
    assert_eq!(slices(&cpu), [1.0; 3]);
    let on_io = io.block_on(io.spawn(async { my_slice() })).unwrap();
    assert_eq!(on_io, Some(kernels));
    let off = lanes_with(1, |builder| builder.niceness(Niceness::off()));
    assert_eq!(slices(&off.cpu), [kernels; 3]);
}

/// Whether the kernel is 6.12 or later, and this process not one that may not ask.
fn takes_slices() -> bool {
    giveway::start().unwrap();
    let asks_for_5_ms = || {
        let weight = Weight::raised_by(0).with_slice(Duration::from_millis(5));
        weight.apply().unwrap();
        my_slice()
    };
    if std::thread::spawn(asks_for_5_ms).join().unwrap() != Some(5.0) {
        return false;
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let numbers: Vec<u32> = release
        .split(['.', '-'])
        .map_while(|part| part.parse().ok())
        .collect();
    numbers.as_slice() >= [6, 12].as_slice() && getpriority_process(None) == Ok(0)
}
