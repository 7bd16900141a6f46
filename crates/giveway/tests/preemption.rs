//! The thread that interrupts the cores, on a kernel that is taken for a lazy one: it takes
//! `membarrier` as well. One test, since what it looks at belongs to the process.

#![cfg(target_os = "linux")]

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use std::{fs, thread};

use giveway::{Preemption, assume, core_interrupts, preemption};

fn wait_until(is: impl Fn() -> bool) {
    while !is() {
        thread::park_timeout(Duration::from_millis(1));
    }
}

/// Runs `f` while threads compute that know nothing of this crate. They are many: what else the
/// machine computes would leave one of them less than half a core.
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

fn has_thread(name: &str) -> bool {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let is_it = |comm: String| comm.trim_end() == name;
    tasks
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .any(is_it)
}

#[test]
fn a_process_that_computes_interrupts_its_cores_until_the_kernel_preempts_at_once() {
    if thread::available_parallelism().unwrap().get() < 2 {
        return;
    }
    assume(Preemption::Lazy);
    giveway::start().unwrap();
    // Whatever computes, and again after a rest.
    for _ in 0..2 {
        let before = core_interrupts();
        beside_what_computes(|| wait_until(|| core_interrupts() > before + 20));
    }
    // A rest ends by a call, and by itself.
    beside_what_computes(|| {
        let before = core_interrupts();
        giveway::note_activity();
        wait_until(|| core_interrupts() > before);
    });
    assert!(has_thread("giveway-preempt"));
    assume(Preemption::AtOnce);
    giveway::note_activity();
    wait_until(|| !has_thread("giveway-preempt"));
    assert_eq!(preemption(), Preemption::AtOnce);
    let before = core_interrupts();
    giveway::start().unwrap();
    assert!(!has_thread("giveway-preempt"));
    assert_eq!(core_interrupts(), before);
}
