//! Whether the kernel gives a thread that wakes up a core at once, and what the process does if not.
//! (`.ci/kernels` looks at kernels of both kinds. Here it is the one of this machine, and a
//! sandbox may not let the process find out.)

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use giveway::{Preemption, core_interrupts, preemption};

use crate::computing::compute_for;
use crate::support::wait::{has_thread, wait_until};
use crate::support::{BOTH, lanes_with, must_run, time_limit};

/// The kernel keeps 15 bytes of its name.
const MEASURES: &str = "giveway-wakeups";

#[test]
#[ignore = "counts what the kernel does: .ci/nightly"]
fn a_process_that_computes_finds_out_and_does_nothing_on_a_kernel_that_preempts() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores < 2 {
        return must_run::not_run("cores", "one core");
    }
    let _limit = time_limit();
    // Once per process.
    let mut has_measured = false;
    for backend in BOTH {
        let lanes = lanes_with(backend, cores, |lane| lane);
        let cpu = lanes.cpu.handle().clone();
        let is_known = Arc::new(AtomicBool::new(false));
        // More than there are threads on either backend.
        let jobs: Vec<_> = (0..2 * cores + 2)
            .map(|_| {
                let is_known = is_known.clone();
                cpu.spawn_cpu(move || while !is_known.load(Relaxed) {})
            })
            .collect();
        wait_until(|| {
            let measures = has_thread(MEASURES);
            has_measured |= measures;
            // A busy machine may remain unknown.
            !measures && (has_measured || preemption() != Preemption::Unknown)
        });
        let found = preemption();
        assert!(format!("{cpu:?}").contains(&format!("preemption: {found:?}")));
        match found {
            Preemption::Lazy => wait_until(|| core_interrupts() > 0),
            _ => assert_eq!(core_interrupts(), 0, "{backend:?}"),
        }
        is_known.store(true, Relaxed);
        for job in jobs {
            job.wait().unwrap();
        }
        if found != Preemption::Lazy {
            // Nor later.
            let long: Vec<_> = (0..2 * cores + 2)
                .map(|_| cpu.spawn_cpu(|| compute_for(Duration::from_millis(5))))
                .collect();
            for job in long {
                job.wait().unwrap();
            }
            let now = (core_interrupts(), has_thread(MEASURES));
            assert_eq!(now, (0, false), "{backend:?}");
        }
    }
}
