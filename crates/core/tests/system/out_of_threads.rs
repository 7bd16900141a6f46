//! What if the system has no thread to give to a lane? (`tests/alone` has one that has too few.)

use std::error::Error;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::{child, few_threads, gives, memory, nothing, time_limit};
use twolane_core::{Handle, JoinErrorKind, Priority, in_cpu_context};

struct Asks(Handle);

impl Drop for Asks {
    fn drop(&mut self) {
        self.0.spawn_cpu(nothing).detach();
        // Not on a thread that closes jobs.
        let _ = self.0.tokio_handle();
    }
}

/// Not a test by itself: in a process whose group it sets.
#[test]
fn child_without_threads() {
    few_threads::child(|group, lane| {
        group.limit_threads(1);
        let error = lane().build().unwrap_err();
        // Of the system, not of a setting.
        assert!(error.source().is_some(), "{error}");
        group.limit_threads("max");
        let cpu = lane().build().unwrap();
        assert_eq!(cpu.spawn_cpu(gives(1)).wait().unwrap(), 1);
        // None for a priority that was not in use: its jobs are told, and the others go on.
        let high = cpu.handle().with_priority(Priority::High);
        group.limit_threads(1);
        for _ in 0..2 {
            // What it has captured submits a job there, and asks for the threads.
            let captured = Asks(high.clone());
            let refused = high.spawn_cpu(move || drop(captured)).wait().unwrap_err();
            assert_eq!(refused.kind(), JoinErrorKind::NoThreads, "{refused}");
            assert!(refused.is_unavailable());
        }
        let parts = cpu.spawn(in_cpu_context(async {}));
        for refused in [
            high.install(|| ()).unwrap_err(),
            high.tokio_handle().unwrap_err(),
            parts.wait().unwrap_err(),
        ] {
            assert_eq!(refused.kind(), JoinErrorKind::NoThreads);
        }
        assert_eq!(cpu.spawn_cpu(gives(3)).wait().unwrap(), 3);
        group.limit_threads("max");
        assert_eq!(high.spawn_cpu(gives(4)).wait().unwrap(), 4);
        assert!(high.tokio_handle().is_ok());
        assert!(cpu.shutdown().wait().is_empty());
    });
}

#[test]
fn build_returns_an_error() {
    few_threads::in_groups("out_of_threads::child_without_threads");
}

/// Not a test by itself: in a process that has room for so many of its lane's stacks.
#[test]
fn child_without_room() {
    few_threads::with_lane_in_child(|lane| {
        let lane = |stack| lane().worker_threads(4).thread_stack_size(stack).build();
        // The threads that the process has once.
        assert!(lane(1 << 20).unwrap().shutdown().wait().is_empty());
        let used = memory("VmSize") << 10;
        // It has four. (In between `build` may find room or not.)
        for half_stacks in (1..=5).step_by(2) {
            let room = u64::try_from(STACK).unwrap() * half_stacks / 2;
            let limit = Rlimit {
                current: Some(used + room),
                ..getrlimit(Resource::As)
            };
            setrlimit(Resource::As, limit).unwrap();
            let error = lane(STACK).unwrap_err();
            assert!(error.source().is_some(), "{half_stacks}: {error}");
        }
    });
}

const STACK: usize = 256 << 20;

/// Tokio waits for ever for a worker that has no room for its stack.
#[test]
fn build_returns_an_error_where_the_stacks_have_no_room() {
    let _limit = time_limit();
    let found = child::run("out_of_threads::child_without_room", |_| (), |_| ());
    assert_eq!(found, "all as it should be");
}
