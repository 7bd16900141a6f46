//! What does a priority have of its own, and what does it share?

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use crate::support::{Lanes, Stuck, lanes, suspended, thread_name, time_limit};
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
    let _limit = time_limit();
    let Lanes { cpu, io: _io } = lanes(2);
    for (priority, prefix) in ALL.into_iter().zip(["cpu-high-", "cpu-", "cpu-low-"]) {
        let handle = cpu.handle().with_priority(priority);
        let expected = [0, 1].map(|index| format!("{prefix}{index}"));
        assert_eq!(names_of_two(&handle), expected.into());
        assert_eq!(handle.priority(), priority);
        assert_eq!(handle.worker_threads(), 2);
    }
}

/// Whatever a job spawns without a handle is as urgent as the job.
#[test]
fn nested_spawns_keep_their_parents_priority() {
    fn mine() -> Priority {
        Handle::current().priority()
    }
    let _limit = time_limit();
    let Lanes { cpu, io: _io } = lanes(1);
    for priority in ALL {
        let handle = cpu.handle().with_priority(priority);
        let from_closure = handle.spawn_cpu(|| twolane_core::spawn_cpu(|| (mine(), thread_name())));
        let nested = from_closure.wait().unwrap().wait().unwrap();
        assert_eq!(nested.0, priority);
        let own = handle.spawn_cpu(thread_name).wait().unwrap();
        assert_eq!(nested.1, own);

        let from_future = handle.spawn(async {
            let by_io =
                twolane_core::spawn_io(async { twolane_core::spawn_cpu(mine).await.unwrap() });
            (
                twolane_core::spawn_cpu(mine).await.unwrap(),
                by_io.await.unwrap(),
            )
        });
        assert_eq!(from_future.wait().unwrap(), (priority, priority));
    }
}

/// A rayon child has no job of its own, but it is on its job's threads.
#[test]
fn rayon_children_keep_it_too() {
    let _limit = time_limit();
    let Lanes { cpu, io: _io } = lanes(2);
    let low = cpu.handle().with_priority(Priority::Low);
    let names = low.spawn_cpu(|| {
        let both = Barrier::new(2);
        let child = || {
            both.wait();
            twolane_core::spawn_cpu(thread_name)
        };
        let (a, b) = rayon::join(child, child);
        (a, b, thread_name())
    });
    let (a, b, own) = names.wait().unwrap();
    for name in [a.wait().unwrap(), b.wait().unwrap(), own] {
        assert!(name.starts_with("cpu-low-"), "{name}");
    }
}

/// A handle says where, even inside a job of another priority; so does one
/// that was entered.
#[test]
fn an_explicit_handle_wins() {
    let _limit = time_limit();
    let Lanes { cpu, io: _io } = lanes(1);
    let (high, low) = (Priority::High, Priority::Low);
    let [high, low] = [high, low].map(|priority| cpu.handle().with_priority(priority));
    let normal = cpu.handle().clone();
    let nested = high.spawn(async move {
        let by_handle = normal.spawn_cpu(thread_name).await.unwrap();
        let by_entered = {
            let _entered = low.enter();
            twolane_core::spawn_cpu(thread_name)
        };
        (by_handle, by_entered.await.unwrap())
    });
    let names = nested.wait().unwrap();
    assert_eq!(names, ("cpu-0".into(), "cpu-low-0".into()));
}

/// With a pool that runs each job to its end, the urgent one would wait for
/// the stuck ones, and for all that is queued behind them.
#[test]
fn a_late_urgent_job_passes_a_full_queue() {
    let _limit = time_limit();
    let Lanes { cpu, io: _io } = lanes(2);
    let stuck = [(); 2].map(|()| Stuck::start(cpu.handle()).split());
    let queued: Vec<_> = (0..100).map(|n| cpu.spawn_cpu(move || n)).collect();
    let urgent = cpu.handle().with_priority(Priority::High);
    assert_eq!(urgent.spawn_cpu(|| 7).wait().unwrap(), 7);
    assert!(queued.iter().all(|job| !job.is_finished()));
    for (job, let_go) in stuck {
        let_go.send(()).unwrap();
        job.wait().unwrap();
    }
    for (n, job) in queued.into_iter().enumerate() {
        assert_eq!(job.wait().unwrap(), n);
    }
}

/// Weights share the cores and stop no thread: Low ends what High and Normal
/// would go on with for ever.
#[test]
fn low_progresses_while_the_others_never_pause() {
    let _limit = time_limit();
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
    low.spawn_cpu(move || over.store(true, SeqCst))
        .wait()
        .unwrap();
    for job in spinning {
        job.wait().unwrap();
    }
}

/// The cells of the table at `CpuRuntime`, for a priority that is not the
/// first.
#[test]
fn a_shutdown_ends_them_all() {
    let _limit = time_limit();
    let Lanes { cpu, io: _io } = lanes(1);
    let handles = ALL.map(|priority| cpu.handle().with_priority(priority));
    let suspended = handles.each_ref().map(|handle| suspended(handle, ()));
    let stuck = handles
        .each_ref()
        .map(|handle| Stuck::start(handle).split());
    let queued = handles.each_ref().map(|handle| handle.spawn_cpu(|| ()));
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
        assert!(handle.spawn_cpu(|| ()).wait().unwrap_err().kind() == JoinErrorKind::Shutdown);
    }
}
