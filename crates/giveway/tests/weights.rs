//! What a thread has of a weight, and what its children inherit, as `/proc` tells it.

#![cfg(target_os = "linux")]

use std::sync::mpsc;
use std::time::Duration;
use std::{fs, io, panic, thread};

use giveway::{Weight, start};

/// A field of `/proc/thread-self/stat`, by its number in proc(5).
fn stat(field: usize) -> i32 {
    let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
    let behind_the_name = stat.rsplit_once(')').unwrap().1;
    let mut fields = behind_the_name.split_whitespace();
    fields.nth(field - 3).unwrap().parse().unwrap()
}

fn nice() -> i32 {
    stat(19)
}

const SCHED_IDLE: i32 = 5;

fn policy() -> i32 {
    stat(41)
}

fn on_a_thread<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    start().unwrap();
    thread::scope(|scope| scope.spawn(f).join().unwrap())
}

#[test]
fn a_weight_is_above_the_process_and_never_falls() {
    let base = start().unwrap();
    on_a_thread(|| {
        for (steps, expected) in [(5, 5), (5, 5), (0, 5), (16, 16), (19, 19)] {
            Weight::raised_by(steps).apply().unwrap();
            assert_eq!(nice(), (base + expected).min(19));
        }
    });
    assert_eq!(nice(), base);
}

#[test]
fn a_slice_leaves_the_nice_value() {
    on_a_thread(|| {
        let weight = Weight::raised_by(8).with_slice(Duration::from_millis(4));
        weight.apply().unwrap();
        let niced = weight.nice(start().unwrap());
        assert_eq!(nice(), niced);
        // The call for a slice may set it to 0.
        let short = Weight::raised_by(0).with_slice(Duration::from_micros(100));
        short.apply().unwrap();
        assert_eq!(nice(), niced);
    });
}

#[test]
fn the_idle_class_is_nice_19() {
    on_a_thread(|| {
        Weight::idle_class().apply().unwrap();
        assert_eq!((policy(), nice()), (SCHED_IDLE, 19));
    });
}

#[test]
fn a_spawned_thread_inherits_no_weight() {
    let base = start().unwrap();
    let (tell, told) = mpsc::channel();
    let tells = move |tell: mpsc::Sender<(i32, i32)>| tell.send((nice(), policy())).unwrap();
    let usual = policy();
    for weight in [
        Weight::raised_by(0),
        Weight::raised_by(10),
        Weight::idle_class(),
    ] {
        let tell = tell.clone();
        on_a_thread(move || {
            weight.apply().unwrap();
            giveway::spawn("child", move || tells(tell)).unwrap();
        });
        assert_eq!(told.recv().unwrap(), (base, usual), "{weight:?}");
    }
}

/// Of this thread, as the kernel tells it; `None` before Linux 6.12, or without that file.
fn slice() -> Option<String> {
    let sched = fs::read_to_string("/proc/thread-self/sched").ok()?;
    let mut lines = sched.lines();
    lines
        .find(|line| line.starts_with("se.slice"))
        .map(str::to_owned)
}

/// Also of one that differs in nothing else.
#[test]
fn a_spawned_thread_inherits_no_slice() {
    let usual = slice();
    let (tell, told) = mpsc::channel();
    on_a_thread(move || {
        let short = Weight::raised_by(0).with_slice(Duration::from_micros(100));
        short.apply().unwrap();
        giveway::spawn("child", move || tell.send(slice()).unwrap()).unwrap();
    });
    assert_eq!(told.recv().unwrap(), usual);
}

/// Not by a thread that has inherited one, either, which it does not know: it handed it down.
#[test]
fn a_thread_with_an_inherited_slice_hands_none_down() {
    let usual = slice();
    let (tell, told) = mpsc::channel();
    on_a_thread(move || {
        let short = Weight::raised_by(0).with_slice(Duration::from_micros(100));
        short.apply().unwrap();
        on_a_thread(move || {
            giveway::spawn("grandchild", move || tell.send(slice()).unwrap()).unwrap();
        });
    });
    assert_eq!(told.recv().unwrap(), usual);
}

/// It used to end the thread that spawns for those that are niced.
#[test]
fn a_bad_name_panics_on_the_calling_thread_alone() {
    on_a_thread(|| {
        Weight::raised_by(10).apply().unwrap();
        let bad = panic::catch_unwind(|| giveway::spawn("a\0b", || {}));
        assert!(bad.is_err());
        let (tell, told) = mpsc::channel();
        giveway::spawn("good", move || tell.send(()).unwrap()).unwrap();
        told.recv().unwrap();
    });
}

#[test]
fn what_the_kernel_would_cut_is_refused() {
    let of = |slice| Weight::raised_by(1).with_slice(Duration::from_micros(slice));
    for (weight, names) in [
        (Weight::raised_by(20), "raised_by(20)"),
        (of(99), "with_slice(99µs)"),
        (of(100_001), "with_slice(100.001ms)"),
    ] {
        let refused = weight.apply().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        assert!(refused.to_string().contains(names), "{refused}");
    }
    assert_eq!(nice(), start().unwrap());
}
