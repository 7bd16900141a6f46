//! How many threads does a lane have, and what says so?

use std::process::Command;

#[cfg(target_os = "linux")]
use crate::cpu_mask::{bind_this_thread, my_cores};
use crate::support::cgroup::Group;
use crate::support::{child, cpu_lane, must_run, nothing, time_limit};
use twolane_core::CpuRuntime;

fn throttled_to(cpu: &CpuRuntime) -> String {
    let debug = format!("{:?}", cpu.handle());
    let after = debug.split_once("throttled_to_cores: ").unwrap().1;
    after.split(", closed").next().unwrap().to_owned()
}

/// Not a test by itself: what the others run in a process of their own, whose
/// environment and cgroup they can choose.
#[test]
fn child_of_the_group() {
    let _limit = time_limit();
    if !child::is_child() {
        return;
    }
    let io = tokio::runtime::Runtime::new().unwrap();
    let builder = || CpuRuntime::builder().io_handle(io.handle().clone());
    let built = builder().build();
    let set = builder().worker_threads(3).build().unwrap();
    let threads = set.handle().worker_threads();
    assert_eq!(threads, 3, "`Builder::worker_threads` comes first");
    let unthrottled = builder().worker_threads(1).throttle_to_quota(false);
    assert_eq!(throttled_to(&unthrottled.build().unwrap()), "None");
    match built {
        Ok(cpu) if std::env::var_os("TWOLANE_TEST_PACE").is_some() => {
            child::found(throttled_to(&cpu));
        }
        Ok(cpu) => child::found(cpu.handle().worker_threads()),
        Err(error) => child::found(error),
    }
}

/// Runs the child with the variable, after `place` has seen its process number.
fn threads_found(variable: Option<&str>, place: impl FnOnce(u32)) -> String {
    let set = |child: &mut Command| {
        child.env_remove("TWOLANE_CPU_THREADS");
        child.envs(variable.map(|value| ("TWOLANE_CPU_THREADS", value)));
    };
    child::run("sizing::child_of_the_group", set, place)
}

/// By default one per core, and as the variable says: a bad one is an error that names it.
#[test]
fn the_variable_sets_it() {
    let _limit = time_limit();
    let default = CpuRuntime::default_threads().unwrap().to_string();
    assert_eq!(threads_found(None, |_| ()), default);
    assert_eq!(threads_found(Some(" 5 "), |_| ()), "5");
    for bad in ["none", "0", "-2", "1.5", "", "99999999999999999999"] {
        let found = threads_found(Some(bad), |_| ());
        let named = format!("TWOLANE_CPU_THREADS={bad:?}: the CPU lane takes 1 to ");
        assert!(found.starts_with(&named), "{found}");
    }
}

/// Puts the limit on, or tells why not.
fn limits(group: &Group, cores: f64) -> bool {
    let set = group.limit_cores(Some(cores));
    // The group above may have less.
    set.inspect_err(|error| must_run::not_run("cgroup", error))
        .is_ok()
}

/// What the kernel shows to a process in a real group.
#[test]
fn a_quota_is_seen() {
    let _limit = time_limit();
    let cores = std::thread::available_parallelism().unwrap().get();
    let Some(group) = Group::new("cpu") else {
        return;
    };
    // A tenth of a core more than the last but one. One core alone would be slow.
    let quota = if cores == 1 { 0.5 } else { cores as f64 - 0.9 };
    if !limits(&group, quota) {
        return;
    }
    let found = threads_found(None, |id| group.add(id));
    // Rounded up: 1.1 cores are two threads.
    assert_eq!(found, quota.ceil().to_string());
    let throttled = |group: &Group| {
        let set = |child: &mut Command| {
            child.env("TWOLANE_TEST_PACE", "1");
        };
        child::run("sizing::child_of_the_group", set, |id| group.add(id))
    };
    assert_eq!(throttled(&group), format!("Some({quota:?})"));
    // One of as many cores as there are can't be used up.
    if limits(&group, cores as f64) {
        assert_eq!(throttled(&group), "None");
    }
}

/// Not a test by itself: in a process whose group's quota it changes.
#[test]
fn child_that_is_resized() {
    let _limit = time_limit();
    if !child::is_child() {
        return;
    }
    let group = Group::of_child();
    let cores = std::thread::available_parallelism().unwrap().get() as f64;
    let io = tokio::runtime::Runtime::new().unwrap();
    // On a thread that is bound to one core: the I/O lane, which is not, has the quota too.
    #[cfg(target_os = "linux")]
    bind_this_thread(&my_cores()[..1]);
    let lanes = [(); 2].map(|()| cpu_lane(1, io.handle()));
    for quota in [Some(cores - 0.75), None, Some(cores - 0.5)] {
        group.limit_cores(quota).unwrap();
        for lane in &lanes {
            // It looks where jobs begin, once in two seconds.
            while throttled_to(lane) != format!("{quota:?}") {
                lane.spawn_cpu(nothing).wait().unwrap();
            }
            assert_eq!(lane.handle().worker_threads(), 1);
        }
    }
    child::found("each of them");
}

/// A container's limits change in place. A lane kept the quota that it was built with: one that
/// had grown was not used (393 jobs/s where a new lane did 1,033), one that had shrunk was used
/// up, and the kernel stopped the I/O lane.
#[test]
fn a_quota_that_changes_is_seen() {
    let _limit = time_limit();
    let Some(group) = Group::new("cpu") else {
        return;
    };
    let cores = std::thread::available_parallelism().unwrap().get() as f64;
    if !limits(&group, cores - 0.5) {
        return;
    }
    let set = |child: &mut Command| group.name_to(child);
    let found = child::run("sizing::child_that_is_resized", set, |id| group.add(id));
    assert_eq!(found, "each of them");
}
