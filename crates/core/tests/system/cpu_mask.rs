//! On which cores do a lane's threads run? On those of the thread that built it.
//!
//! One thread of the process starts the threads of all lanes, so that none is born niced. They
//! got its cores too: those of the thread that had built the first lane.

use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tokio::runtime::Runtime;

use crate::support::wait::wait_until;
use crate::support::{limit_this_thread, must_run};
use crate::threads::cores;
use stallwatch::Watch;
use twolane_core::{Builder, CpuRuntime, Handle, Priority, in_cpu_context};

const ALL: [Priority; 3] = [Priority::High, Priority::Normal, Priority::Low];
/// What ends the names of the threads of a lane that has two for each priority and a watch.
const ROLES: [&str; 10] = [
    "high-0", "high-1", "0", "1", "low-0", "low-1", "tokio-0", "tokio-1", "control", "watch",
];

/// The cores that this thread may use.
pub(crate) fn my_cores() -> Vec<usize> {
    let mask = sched_getaffinity(None).unwrap();
    let is_set = |core: &usize| mask.is_set(*core);
    (0..CpuSet::MAX_CPU).filter(is_set).collect()
}

/// Those of a thread that a thread of the lane starts.
fn cores_of_a_child(lane: &Handle) -> Vec<usize> {
    let start = || thread::spawn(my_cores).join().unwrap();
    lane.spawn_cpu(start).wait().unwrap()
}

pub(crate) fn bind_this_thread(cores: &[usize]) {
    let mut mask = CpuSet::new();
    cores.iter().for_each(|core| mask.set(*core));
    sched_setaffinity(None, &mask).unwrap();
}

/// Runs `f` on a thread that may use these cores.
fn on_cores<T: Send>(cores: &[usize], f: impl FnOnce() -> T + Send) -> T {
    let bound = || {
        bind_this_thread(cores);
        f()
    };
    thread::scope(|scope| scope.spawn(bound).join().unwrap())
}

fn builder(threads: usize, io: &Runtime) -> Builder {
    limit_this_thread();
    let builder = CpuRuntime::builder().worker_threads(threads);
    builder.io_handle(io.handle().clone())
}

#[test]
fn each_lane_runs_where_it_was_built() {
    let all = my_cores();
    let (first, last) = (vec![all[0]], vec![all[all.len() - 1]]);
    if first == last {
        return must_run::not_run("cores", "this process has one core");
    }
    let io = Runtime::new().unwrap();
    let built = [("a", &all), ("f", &first), ("l", &last)];
    let lanes = built.map(|(name, cores)| {
        let builder = builder(2, &io).thread_name(name).watch_io(Watch::new());
        on_cores(cores, || builder.build().unwrap())
    });
    for (lane, (name, expected)) in lanes.iter().zip(built) {
        for priority in ALL {
            // This thread is not bound.
            let handle = lane.handle().with_priority(priority);
            let found = cores_of_a_child(&handle);
            assert_eq!(&found, expected, "{name}, {priority:?}");
        }
        lane.handle().tokio_handle().unwrap();
        for role in ROLES {
            let thread = format!("{}-{role}", name);
            // It takes its name when it first runs, and then its cores.
            let is_bound = |list: &String| *list == expected[0].to_string();
            let is_there = |list: &String| expected.len() > 1 || is_bound(list);
            wait_until(|| cores(&thread).values().any(is_there));
        }
    }
}

/// What `install` starts, the threads of its priority, also if it is called on any thread. And the
/// blocking threads of the lane's Tokio runtime: they have the cores of the thread that needs them
/// first, as with any Tokio runtime, which is in a job one of the lane.
#[test]
fn what_starts_later_runs_there_too() {
    let all = my_cores();
    let last = &all[all.len() - 1..];
    let io = Runtime::new().unwrap();
    let lane = builder(1, &io);
    let lane = on_cores(last, || lane.build().unwrap());
    let blocking = in_cpu_context(async { tokio::task::spawn_blocking(my_cores).await });
    assert_eq!(lane.spawn(blocking).wait().unwrap().unwrap(), last);
    for priority in ALL {
        let handle = lane.handle().with_priority(priority);
        let found = on_cores(&all[..1], || handle.install(my_cores).unwrap());
        assert_eq!(found, last, "{priority:?}");
    }
}

/// A lane that is built in a job has the cores that a start hook has left to the job's thread.
#[test]
fn a_hook_binds_a_thread_and_what_is_built_there() {
    let all = my_cores();
    let io = Runtime::new().unwrap();
    let first = all[0];
    let bind = move || bind_this_thread(&[first]);
    let bound = builder(1, &io).on_thread_start(bind).build().unwrap();
    let inner = builder(1, &io);
    let inner = bound.spawn_cpu(move || inner.build().unwrap());
    let inner = inner.wait().unwrap();
    for priority in ALL {
        let handle = inner.handle().with_priority(priority);
        assert_eq!(cores_of_a_child(&handle), all[..1]);
    }
}

/// The number of threads is that of the cores which they have.
#[test]
fn a_bound_thread_builds_a_lane_of_one_thread() {
    limit_this_thread();
    let first = &my_cores()[..1];
    let io = Runtime::new().unwrap();
    let lane = CpuRuntime::builder().io_handle(io.handle().clone());
    let lane = on_cores(first, || lane.build().unwrap());
    assert_eq!(lane.handle().worker_threads(), 1);
    assert_eq!(cores_of_a_child(lane.handle()), first);
}
