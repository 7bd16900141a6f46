//! A child process in a group with few threads to give.

use std::process::Command;

use super::cgroup::Group;
use super::{child, time_limit};
use twolane_core::{Builder, CpuRuntime};

/// Runs that test of this binary as a child, in a group of its own.
pub fn in_groups(test: &str) {
    let _limit = time_limit();
    let Some(group) = Group::new("pids") else {
        return;
    };
    let set = |child: &mut Command| {
        group.name_to(child);
    };
    let found = child::run(test, set, |id| group.add(id));
    assert_eq!(found, "all as it should be");
}

/// In that child, `test` with a lane of two workers to build.
pub fn child(test: impl FnOnce(&Group, &dyn Fn() -> Builder)) {
    with_lane_in_child(|lane| test(&Group::of_child(), lane));
}

/// The same in any child: it finds "all as it should be".
pub fn with_lane_in_child(test: impl FnOnce(&dyn Fn() -> Builder)) {
    let _limit = time_limit();
    if !child::is_child() {
        return;
    }
    let io = tokio::runtime::Builder::new_current_thread();
    let io = { io }.build().unwrap();
    let lane = || {
        let lane = CpuRuntime::builder().worker_threads(2);
        lane.io_handle(io.handle().clone())
    };
    test(&lane);
    child::found("all as it should be");
}
