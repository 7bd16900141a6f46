//! Whether the kernel gives a thread that wakes up a core at once, and what the lane does if not.
//! (`.ci/kernels` looks at kernels of both kinds. Here it is the one of this machine.)

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use twolane::{CpuRuntime, Preemption};

use crate::support::wait::has_thread;
use crate::support::{BOTH, lanes_with, time_limit};

/// The kernel keeps 15 bytes of its name.
const MEASURES: &str = "twolane-wakeups";

#[test]
fn a_saturated_lane_finds_out_and_does_nothing_on_a_kernel_that_preempts() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cfg!(not(target_os = "linux")) || cores < 2 {
        return;
    }
    let _limit = time_limit();
    // Once per process.
    let mut has_measured = false;
    for backend in BOTH {
        let lanes = lanes_with(backend, cores, |lane| lane);
        let cpu = lanes.cpu.handle();
        let is_known = Arc::new(AtomicBool::new(false));
        // More than there are threads on either backend.
        let jobs: Vec<_> = (0..2 * cores + 2)
            .map(|_| {
                let is_known = is_known.clone();
                cpu.spawn_cpu(move || while !is_known.load(Relaxed) {})
            })
            .collect();
        loop {
            let measures = has_thread(MEASURES);
            has_measured |= measures;
            // A busy machine may remain unknown.
            let is_over = has_measured || cpu.preemption() != Preemption::Unknown;
            if is_over && !measures {
                break;
            }
            std::thread::yield_now();
        }
        let found = cpu.preemption();
        assert!(format!("{cpu:?}").contains(&format!("preemption: {found:?}")));
        let interrupts = || cpu.metrics().core_interrupts;
        match found {
            Preemption::Lazy => {
                while interrupts() == 0 {
                    std::thread::yield_now();
                }
            }
            _ => assert_eq!(interrupts(), 0, "{backend:?}"),
        }
        is_known.store(true, Relaxed);
        for job in jobs {
            job.wait().unwrap();
        }
        if found != Preemption::Lazy {
            // Nor later.
            let long: Vec<_> = (0..2 * cores + 2)
                .map(|_| cpu.spawn_cpu(|| crate::computing::compute_for(Duration::from_millis(5))))
                .collect();
            for job in long {
                job.wait().unwrap();
            }
            assert_eq!(
                (interrupts(), has_thread(MEASURES)),
                (0, false),
                "{backend:?}"
            );
        }
    }
}

#[test]
fn a_period_that_is_too_short_is_an_error_that_names_it() {
    let io = tokio::runtime::Runtime::new().unwrap();
    let lane = || CpuRuntime::builder().io_handle(io.handle().clone());
    let build = |period| lane().interrupt_cores_every(period).build();
    let error = build(Duration::from_micros(49)).unwrap_err().to_string();
    assert!(
        error.starts_with("Builder::interrupt_cores_every(49µs): "),
        "{error}"
    );
    assert!(error.contains("50µs to 100ms"), "{error}");
    assert!(build(Duration::from_millis(101)).is_err());
    for fits in [0, 50, 100_000].map(Duration::from_micros) {
        assert_eq!(
            build(fits).unwrap().spawn_cpu(|| 1).wait().unwrap(),
            1,
            "{fits:?}"
        );
    }
}

/// Of this thread.
#[cfg(target_os = "linux")]
fn nice() -> i32 {
    rustix::process::getpriority_process(None).unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn a_thread_takes_short_slices_and_keeps_its_nice_value() {
    let thread = std::thread::spawn(|| {
        if nice() == 0 {
            twolane::take_short_slices().unwrap();
            assert_eq!(nice(), 0);
        }
        let niced = nice().max(7);
        rustix::process::setpriority_process(None, niced).unwrap();
        let refused = twolane::take_short_slices().unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::Unsupported);
        assert_eq!(nice(), niced, "it would have been set to 0");
    });
    thread.join().unwrap();
}
