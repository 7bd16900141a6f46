//! The threads that tick, as the system lists them. One test, since they belong to the process.

#![cfg(target_os = "linux")]

use std::io::ErrorKind;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::getpriority_process;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

const LEADER: &str = "giveway-ticker";

/// Seldom: the looks count as what the process computes. Meanwhile threads come and go, or not.
fn wait_until(notes: bool, is: impl Fn() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < Duration::from_secs(120), "in vain");
        if notes {
            giveway::note_activity();
        }
        thread::park_timeout(Duration::from_millis(20));
    }
}

/// Time in which the leader has looked, and rests if it may.
fn pass(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        thread::park_timeout(time);
    }
}

/// Runs `f` while threads compute that know nothing of this crate. They are many: what else the
/// machine computes would leave one of them too little.
fn beside_what_computes(f: impl FnOnce()) {
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }
    let threads = thread::available_parallelism().unwrap().get().max(16);
    let (is_over, begun) = (AtomicBool::new(false), Barrier::new(threads + 1));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                begun.wait();
                while !is_over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        begun.wait();
        let _end = End(&is_over);
        f();
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
    if !has_slices() || getpriority_process(None) != Ok(0) {
        return;
    }
    wait_until(false, || !threads(LEADER).is_empty());
    let leader = threads(LEADER)[0];
    pass(Duration::from_millis(300));
    assert_eq!(ticks_on(), [], "nothing computes");
    // And again after a rest. Whatever computes counts.
    for _ in 0..2 {
        beside_what_computes(|| wait_until(true, || ticks_on() == all));
        wait_until(false, || threads("giveway-tick").is_empty());
        pass(Duration::from_millis(300));
    }
    beside_what_computes(|| {
        wait_until(true, || ticks_on() == all);
        // As a cgroup that loses cores.
        all.truncate(1);
        let mut only = CpuSet::new();
        only.set(all[0]);
        sched_setaffinity(Some(leader), &only).unwrap();
        wait_until(true, || ticks_on() == all);
        giveway::tick_each(None).unwrap();
        wait_until(true, || ticks_on().is_empty());
        for _ in 0..30 {
            giveway::note_activity();
            pass(Duration::from_millis(20));
            assert_eq!(ticks_on(), []);
        }
    });
    giveway::tick_each(Some(Duration::from_millis(1))).unwrap();
    beside_what_computes(|| wait_until(true, || ticks_on() == all));
    let odd = giveway::tick_each(Some(Duration::from_secs(1))).unwrap_err();
    assert_eq!(odd.kind(), ErrorKind::InvalidInput);
    assert_eq!(odd.to_string(), "tick_each(1s): 0.25 to 10 ms, or None");
}
