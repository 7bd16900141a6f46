//! `take_short_slices`, by a thread of the application's.

use rustix::process::{getpriority_process, setpriority_process};

/// On Linux it is the thread's own.
fn nice() -> i32 {
    getpriority_process(None).unwrap()
}

#[test]
fn a_thread_takes_short_slices_and_keeps_its_nice_value() {
    let thread = std::thread::spawn(|| {
        if nice() == 0 {
            twolane::kernel::take_short_slices().unwrap();
            assert_eq!(nice(), 0);
        }
        let niced = nice().max(7);
        setpriority_process(None, niced).unwrap();
        let refused = twolane::kernel::take_short_slices().unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::Unsupported);
        assert_eq!(nice(), niced, "it would have been set to 0");
    });
    thread.join().unwrap();
}
