//! The stack of a thread that computes, where the kernel lets us have it.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};

use crate::limit::time_limit;
use crate::setting::runtime;
use stallwatch::{Watch, watch};

#[inline(never)]
fn parse_all_of_it(told: &AtomicBool) {
    while !black_box(told.load(SeqCst)) {}
}

/// Another thread resolves it, for up to a second, at the lowest nice value (a test in `run.rs`).
/// The hook is called by the watch's own thread, which has to keep its pace.
#[test]
fn a_stall_has_the_stack_of_its_thread() {
    let _limit = time_limit();
    let io = runtime(Some(1));
    let (send, stalls) = mpsc::channel();
    let name = || std::thread::current().name().map(str::to_owned);
    let watched = Watch::new().on_stall(move |stall| send.send((name(), stall.clone())).unwrap());
    let _watcher = watched.thread_name("own").start(io.handle()).unwrap();
    let told = Arc::new(AtomicBool::new(false));
    let until = told.clone();
    let task = io.spawn(watch(async move { parse_all_of_it(&until) }).named("a handler"));
    let (thread, stall) = stalls.recv().unwrap();
    told.store(true, SeqCst);
    io.block_on(task).unwrap();
    assert_eq!(thread.as_deref(), Some("own"));
    assert_eq!(stall.culprit(), Some("a handler"));
    match stall.stack() {
        Some(stack) => {
            assert!(stack.contains("parse_all_of_it"), "{stack}");
            assert!(!stack.contains("stallwatch::"), "{stack}");
            assert!(stall.to_string().ends_with(stack), "{stall}");
        }
        None => eprintln!("NOT TESTED: the kernel gives no stack"),
    }
}
