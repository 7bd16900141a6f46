//! What does a priority have of its own, and what does it share?

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use crate::support::{Lanes, Stuck, lanes, nothing, suspended, thread_name};
use twolane_core::{Handle, JoinErrorKind, Priority};

pub(crate) const ALL: [Priority; 3] = [Priority::High, Priority::Normal, Priority::Low];

#[test]
fn the_more_urgent_of_two_is_the_greater() {
    assert!(ALL.is_sorted_by(|more, less| more > less));
}

/// On which threads two jobs run that are there at the same time.
fn names_of_two(handle: &Handle) -> BTreeSet<String> {
    let both = Arc::new(Barrier::new(2));
    let job = || {
        let both = both.clone();
        handle.spawn_cpu(move || {
            both.wait();
            thread_name()
        })
    };
    let jobs = [job(), job()];
    jobs.map(|job| job.wait().unwrap()).into_iter().collect()
}

#[test]
fn each_has_threads_of_its_own() {
    let Lanes { cpu, io: _io } = lanes(2);
    for (priority, prefix) in ALL.into_iter().zip(["cpu-high-", "cpu-", "cpu-low-"]) {
        let handle = cpu.handle().with_priority(priority);
        let expected = [0, 1].map(|index| format!("{prefix}{index}"));
        assert_eq!(names_of_two(&handle), expected.into());
        assert_eq!(handle.priority(), priority);
        assert_eq!(handle.worker_threads(), 2);
    }
}

/// Weights share the cores and stop no thread: Low ends what High and Normal
/// would go on with for ever.
#[test]
fn low_progresses_while_the_others_never_pause() {
    let Lanes { cpu, io: _io } = lanes(2);
    let over = Arc::new(AtomicBool::new(false));
    let mut spinning = Vec::new();
    for priority in [Priority::High, Priority::Normal] {
        for _ in 0..4 {
            let over = over.clone();
            let spin = move || {
                while !over.load(SeqCst) {
                    std::hint::spin_loop();
                }
            };
            spinning.push(cpu.handle().with_priority(priority).spawn_cpu(spin));
        }
    }
    let low = cpu.handle().with_priority(Priority::Low);
    let ends = low.spawn_cpu(move || over.store(true, SeqCst));
    ends.wait().unwrap();
    for job in spinning {
        job.wait().unwrap();
    }
}

/// The cells of the table at `CpuRuntime`, for a priority that is not the
/// first.
#[test]
fn a_shutdown_ends_them_all() {
    let Lanes { cpu, io: _io } = lanes(1);
    let handles = ALL.map(|priority| cpu.handle().with_priority(priority));
    let handles = handles.each_ref();
    let suspended = handles.map(|handle| suspended(handle, ()));
    let stuck = handles.map(|handle| Stuck::start(handle).split());
    let queued = handles.map(|handle| handle.spawn_cpu(nothing));
    let in_time = cpu.shutdown_timeout(Duration::from_millis(1)).wait();
    assert_eq!(in_time.jobs, 3);
    for job in suspended.into_iter().chain(queued) {
        assert_eq!(job.wait().unwrap_err().kind(), JoinErrorKind::Shutdown);
    }
    for (job, let_go) in stuck {
        let_go.send(5).unwrap();
        assert_eq!(job.wait().unwrap(), 5);
    }
    assert!(cpu.shutdown().wait().is_empty());
    for handle in handles {
        let refused = handle.spawn_cpu(nothing).wait().unwrap_err();
        assert_eq!(refused.kind(), JoinErrorKind::Shutdown);
    }
}
