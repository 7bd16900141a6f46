//! The settings for kernels that let a thread that wakes up wait. (What a lane does there is tested
//! beside `core/src/lane/interrupts.rs`; what it finds out about this machine, in `tests/alone`.)

use std::time::Duration;

use twolane::CpuRuntime;

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
