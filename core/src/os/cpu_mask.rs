//! The CPU mask of a thread: the cores that it may use. A new thread inherits it from the
//! thread that spawns it.
//!
//! On platforms other than Linux, and on machines with more than 1,024 cores, nothing is
//! done about it.

/// Returns `main` for a thread that has the mask of this one, whichever thread spawns it.
#[cfg(target_os = "linux")]
pub(super) fn hand_down(main: impl FnOnce() + Send) -> impl FnOnce() + Send {
    use rustix::thread::{sched_getaffinity, sched_setaffinity};

    let mask = sched_getaffinity(None);
    move || {
        match mask {
            // Not if they are equal: a thread that has set its mask keeps it when its cgroup gets
            // more cores.
            Ok(mask) if sched_getaffinity(None) != Ok(mask) => {
                // An error means that the cgroup has lost those cores.
                let _ = sched_setaffinity(None, &mask);
            }
            _ => {}
        }
        main();
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn hand_down(main: impl FnOnce() + Send) -> impl FnOnce() + Send {
    main
}
