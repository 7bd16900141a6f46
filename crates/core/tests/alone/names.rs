//! Does a submission by name wait for a name that another thread brings?
//!
//! It did: a thread of `Low` that brought a long name copied it under a lock that every submission
//! by name waited for. Counted are the sleeps of a thread that looks a known name up meanwhile.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::{fs, thread};

use crate::support::lanes;

const NAMES: usize = 50;

fn sleeps_of_this_thread() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let mut lines = status.lines();
    let sleeps = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    sleeps.unwrap().trim().parse().unwrap()
}

#[test]
#[ignore = "counts what the kernel does: .ci/nightly"]
fn no_submission_waits_for_a_name_that_another_thread_brings() {
    let (cpu, _lanes) = lanes(1).and_handle();
    cpu.with_name("known");
    let (begin, is_over) = (Barrier::new(2), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut name = "x".repeat(4 << 20);
            begin.wait();
            for n in 0..NAMES {
                name.replace_range(..3, &format!("{n:03}"));
                cpu.with_name(&name);
            }
            is_over.store(true, SeqCst);
        });
        begin.wait();
        let before = sleeps_of_this_thread();
        while !is_over.load(SeqCst) {
            cpu.with_name("known");
        }
        let slept = sleeps_of_this_thread() - before;
        assert!(slept < 10, "{slept} sleeps");
    });
}
