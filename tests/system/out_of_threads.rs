//! What if the system has no thread to give to a lane? (`tests/alone` has one that has too few.)

use std::error::Error;
use std::process::Command;

use crate::support::cgroup::Group;
use crate::support::{backend_of_child, child, cpu_lane, time_limit, with_both};
use twolane::CpuRuntime;

/// Not a test by itself: in a process whose group it sets.
#[test]
fn child_without_threads() {
    let _limit = time_limit();
    if !child::is_child() {
        return;
    }
    let group = Group::of_child();
    let backend = backend_of_child();
    let io = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    group.limit_threads(1);
    let lane = CpuRuntime::builder().backend(backend).worker_threads(2);
    let error = lane.io_handle(io.handle().clone()).build().unwrap_err();
    // Of the system, not of a setting.
    assert!(error.source().is_some(), "{error}");
    group.limit_threads("max");
    let cpu = cpu_lane(backend, 2, io.handle());
    assert_eq!(cpu.spawn_cpu(|| 1).wait().unwrap(), 1);
    assert!(cpu.shutdown().wait().is_empty());
    child::found("an error, and a lane");
}

#[test]
fn build_returns_an_error() {
    with_both(|backend| {
        let Some(group) = Group::new("pids") else {
            return;
        };
        let set = |child: &mut Command| {
            group.name_to(child);
            child.env("TWOLANE_TEST_BACKEND", format!("{backend:?}"));
        };
        let test = "out_of_threads::child_without_threads";
        let found = child::run(test, set, |id| group.add(id));
        assert_eq!(found, "an error, and a lane");
    });
}
