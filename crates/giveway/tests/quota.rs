//! Which quota has a process whose threads are bound to cores? In a real control group.

#![cfg(target_os = "linux")]
#![allow(
    clippy::incompatible_msrv,
    reason = "the oldest Rust compiles no tests"
)]

#[path = "../../core/tests/support/cgroup.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use all of it")]
mod cgroup;
#[path = "../../core/tests/support/child.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use all of it")]
mod child;
#[path = "../../core/tests/support/limit.rs"]
#[allow(unreachable_pub, reason = "other tests use it as a module of theirs")]
mod limit;
#[path = "../../core/tests/support/must_run.rs"]
mod must_run;

use std::process::Command;
use std::thread;

use cgroup::Group;
use giveway::{Claim, Meter, Throttle};
use rustix::process::getpid;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

const FIRST: f64 = 1.5;
const THEN: f64 = 1.25;

fn bind(thread: Option<Pid>, core: Option<usize>) {
    let mut one = CpuSet::new();
    one.set(core.unwrap());
    sched_setaffinity(thread, &one).unwrap();
}

/// As in a program that has a thread for each core. The quota is read every two seconds by a thread
/// that has the mask of the one that made the first call: it saw one core, the main thread's or that
/// one's, and took the quota for more than the process can use up.
#[test]
fn a_quota_is_kept_though_main_and_the_first_caller_have_one_core_each() {
    if child::is_child() {
        return child_that_binds_its_threads();
    }
    let _limit = limit::time_limit();
    if thread::available_parallelism().unwrap().get() < 2 {
        return must_run::not_run("cores", "this process has one core");
    }
    let Some(group) = Group::new("cpu") else {
        return;
    };
    if let Err(error) = group.limit_cores(Some(FIRST)) {
        return must_run::not_run("cgroup", error); // the group above has less
    }
    let set = |child: &mut Command| group.name_to(child);
    let test = "a_quota_is_kept_though_main_and_the_first_caller_have_one_core_each";
    let found = child::run(test, set, |id| group.add(id));
    assert_eq!(found, format!("{:?} {:?}", Some(FIRST), Some(THEN)));
}

fn child_that_binds_its_threads() {
    let group = Group::of_child();
    let mask = sched_getaffinity(None).unwrap();
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| mask.is_set(*core));
    bind(Some(getpid()), cores.next());
    let second = cores.next();
    thread::scope(|scope| {
        scope.spawn(|| {
            bind(None, second);
            giveway::start().unwrap();
        });
    });
    let throttle = Throttle::new().unwrap();
    let built = throttle.cores();
    // From here on each thread of the process is.
    bind(None, second);
    let _limit = limit::time_limit();
    // So that there is something to see.
    group.limit_cores(Some(THEN)).unwrap();
    let meter = Meter::new();
    while throttle.cores() == built {
        throttle.pause_if_due(&meter, Claim::Shared, || false);
    }
    child::found(format!("{built:?} {:?}", throttle.cores()));
}
