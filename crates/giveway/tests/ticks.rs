//! The threads that tick, as the system lists them. One test, since they belong to the process.

#![cfg(target_os = "linux")]

use std::io::ErrorKind;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use std::{fs, thread};

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

const LEADER: &str = "giveway-ticker";

/// Seldom: the looks count as what the process computes.
fn wait_until(is: impl Fn() -> bool) {
    while !is() {
        thread::park_timeout(Duration::from_millis(20));
    }
}

/// Runs `f` while threads compute that know nothing of this crate. They are many: what else the
/// machine computes would leave one of them too little.
fn beside_what_computes(f: impl FnOnce()) {
    const THREADS: usize = 16;
    let (is_over, begun) = (AtomicBool::new(false), Barrier::new(THREADS + 1));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                begun.wait();
                while !is_over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        begun.wait();
        f();
        is_over.store(true, Relaxed);
    });
}

/// Linux 6.12 and later.
fn has_slices() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map(|it| it.parse::<u32>());
    let mut next = || numbers.next().unwrap().unwrap();
    (next(), next()) >= (6, 12)
}

/// Those of this name.
fn threads(name: &str) -> Vec<Pid> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let is_it = |task: &fs::DirEntry| {
        let comm = fs::read_to_string(task.path().join("comm"));
        comm.is_ok_and(|comm| comm.trim_end() == name)
    };
    let id = |task: fs::DirEntry| Pid::from_raw(task.file_name().to_str()?.parse().ok()?);
    let named = tasks.filter_map(Result::ok).filter(is_it);
    named.filter_map(id).collect()
}

/// The core of each that is bound to one.
fn ticks_on() -> Vec<usize> {
    let mask = |thread: Pid| sched_getaffinity(Some(thread)).ok();
    let masks = threads("giveway-tick").into_iter().filter_map(mask);
    let cores = |mask: CpuSet| (0..CpuSet::MAX_CPU).find(|core| mask.is_set(*core));
    let mut cores: Vec<_> = masks
        .filter(|it| it.count() == 1)
        .filter_map(cores)
        .collect();
    cores.sort_unstable();
    cores
}

#[test]
fn each_core_has_a_thread_that_ticks_while_the_process_computes() {
    let mask = sched_getaffinity(None).unwrap();
    let mut all = Vec::from_iter((0..CpuSet::MAX_CPU).filter(|core| mask.is_set(*core)));
    giveway::start().unwrap();
    if !has_slices() {
        return;
    }
    wait_until(|| !threads(LEADER).is_empty());
    let leader = threads(LEADER)[0];
    assert_eq!(ticks_on(), [], "nothing computes");
    // And again after a rest. Whatever computes is seen, if a thread of a pool says that it begins.
    for _ in 0..2 {
        beside_what_computes(|| {
            giveway::note_activity();
            wait_until(|| ticks_on() == all);
        });
        wait_until(|| threads("giveway-tick").is_empty());
    }
    beside_what_computes(|| {
        giveway::note_activity();
        wait_until(|| ticks_on() == all);
        // As a cgroup that loses cores, or gets them.
        all.truncate(1);
        let mut only = CpuSet::new();
        only.set(all[0]);
        sched_setaffinity(Some(leader), &only).unwrap();
        wait_until(|| ticks_on() == all);
        giveway::tick_each(None).unwrap();
        wait_until(|| ticks_on().is_empty());
    });
    giveway::tick_each(Some(Duration::from_millis(1))).unwrap();
    beside_what_computes(|| {
        giveway::note_activity();
        wait_until(|| ticks_on() == all);
    });
    let odd = giveway::tick_each(Some(Duration::from_secs(1))).unwrap_err();
    assert_eq!(odd.kind(), ErrorKind::InvalidInput);
    assert_eq!(odd.to_string(), "tick_each(1s): 0.1 to 10 ms, or None");
}
