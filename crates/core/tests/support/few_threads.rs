//! A child process in a group with few threads to give.

use std::process::Command;

use super::cgroup::Group;
use super::{backend_of_child, child, time_limit, with_both};
use twolane_core::{Backend, Builder, CpuRuntime};

/// Runs that test of this binary as a child of each backend, in a group of its own.
pub fn in_groups(test: &str) {
    with_both(|backend| {
        let Some(group) = Group::new("pids") else {
            return;
        };
        let set = |child: &mut Command| {
            group.name_to(child);
            child.env("TWOLANE_TEST_BACKEND", format!("{backend:?}"));
        };
        let found = child::run(test, set, |id| group.add(id));
        assert_eq!(found, "all as it should be");
    });
}

/// In that child, `test` with a lane of two workers to build.
pub fn child(test: impl FnOnce(&Group, Backend, &dyn Fn() -> Builder)) {
    let _limit = time_limit();
    if !child::is_child() {
        return;
    }
    let backend = backend_of_child();
    let io = tokio::runtime::Builder::new_current_thread();
    let io = { io }.build().unwrap();
    let lane = || {
        let lane = CpuRuntime::builder().backend(backend).worker_threads(2);
        lane.io_handle(io.handle().clone())
    };
    test(&Group::of_child(), backend, &lane);
    child::found("all as it should be");
}
