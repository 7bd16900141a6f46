//! A process that rests, and then computes on threads of which this crate knows nothing.

#![cfg(target_os = "linux")]

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use giveway::{Preemption, preemption};

/// It used to look at the process for two seconds, and then no more.
#[test]
#[ignore = "rests, and takes all cores: .ci/nightly"]
fn the_kernel_is_measured_though_the_process_has_rested() {
    giveway::start().unwrap();
    if preemption() != Preemption::Unknown || thread::available_parallelism().unwrap().get() < 2 {
        return; // it is known by its version
    }
    // Resting is what is tested here.
    let rested = Instant::now();
    while rested.elapsed() < Duration::from_secs(3) {
        thread::park_timeout(Duration::from_secs(3));
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        // Hangs if it is not.
        while preemption() == Preemption::Unknown {
            thread::park_timeout(Duration::from_millis(1));
        }
        is_over.store(true, Relaxed);
    });
}
