//! The stack of a thread that computes, where the kernel lets us have it.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, TryRecvError};

use crate::limit::time_limit;
use crate::setting::{runtime, watched};
use stallwatch::{Watch, watch};

#[inline(never)]
fn parse_all_of_it(told: &AtomicBool) {
    while !black_box(told.load(SeqCst)) {}
}

#[test]
fn a_stall_has_the_stack_of_its_thread() {
    let _limit = time_limit();
    let watched = watched(Some(1));
    let told = watched.told.clone();
    let handler = watch(async move { parse_all_of_it(&told) });
    watched.spawn_and_wait(handler.named("a handler"));
    let stall = watched.stalls.recv().unwrap();
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

/// The nice value of a thread: the 17th field of its `stat` after its name.
fn nice(thread: &Path) -> Option<i32> {
    let stat = fs::read_to_string(thread.join("stat")).ok()?;
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(16)?.parse().ok()
}

/// The nice value of the thread with this name, and for how many nanoseconds it has run.
fn nice_of(name: &str) -> Option<(i32, u64)> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    // An error: it has ended meanwhile.
    let mut paths = tasks.filter_map(|task| Some(task.ok()?.path()));
    let is_named = |path: &Path| {
        let found = fs::read_to_string(path.join("comm"));
        found.is_ok_and(|found| found.trim_end() == name)
    };
    let thread = paths.find(|path| is_named(path))?;
    let ran = fs::read_to_string(thread.join("schedstat")).ok()?;
    let ran = ran.split_whitespace().next()?.parse().ok()?;
    Some((nice(&thread)?, ran))
}

/// It computes for up to a second. Once, it did that at the nice value of the workers, beside
/// the runtime in trouble. The hook is called by the watch's own thread, which has to keep its pace.
#[test]
fn the_thread_that_resolves_a_stack_has_the_lowest_nice_value() {
    let _limit = time_limit();
    let io = runtime(Some(1));
    let (send, stalls) = mpsc::channel();
    let watched = Watch::new().on_stall(move |stall| {
        let own = nice(Path::new("/proc/thread-self")).unwrap();
        let _ = send.send((own, stall.stack().is_some()));
    });
    let watched = watched.thread_name("low");
    let _watcher = watched.start(io.handle()).unwrap();
    let over = Arc::new(());
    let is_over = Arc::downgrade(&over);
    let task = io.spawn(watch(async move { while is_over.strong_count() > 0 {} }));
    // It has another one for its first instructions, before it sets its own.
    const FIRST: u64 = 1_000_000;
    let mut resolves = false;
    let (own, has_stack) = loop {
        match stalls.try_recv() {
            Err(TryRecvError::Empty) => match nice_of("low-stack") {
                Some((nice, ran)) if ran > FIRST => {
                    assert_eq!(nice, 19);
                    resolves = true;
                }
                _ => {}
            },
            told => break told.unwrap(),
        }
    };
    let base = nice(Path::new("/proc/thread-self")).unwrap();
    assert_eq!(own, base);
    if !resolves {
        eprintln!("NOT TESTED: it took less than {FIRST} ns. Is there a stack? {has_stack}");
    }
    drop(over);
    io.block_on(task).unwrap();
}
