use std::fs;
use std::hint::black_box;
use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Instant;

use super::*;

const TIME: Duration = Duration::from_millis(20);

/// Fails where `test` takes over a minute, or panics. Skips it where the kernel permits
/// no sampling.
fn limited(test: impl FnOnce() + Send + 'static) {
    match sample(tid(), TIME) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let why = format!("stacks: kernel.perf_event_paranoid above 2, or seccomp: {error}");
            // As `must_run.rs` of the workspace's tests, which are not in this package.
            let has_to = std::env::var("TWOLANE_MUST_RUN").unwrap_or_default();
            assert!(!has_to.split(',').any(|it| it.trim() == "stacks"), "{why}");
            let test = thread::current();
            let test = test.name().unwrap_or("?");
            // Not by `eprintln!`, which the harness would capture.
            let _ = writeln!(io::stderr(), "\nNOT RUN: {test} ({why})");
            return;
        }
        sampled => drop(sampled.unwrap()),
    }
    let (done, end) = mpsc::channel();
    thread::spawn(move || {
        test();
        done.send(()).unwrap();
    });
    end.recv_timeout(Duration::from_secs(60)).unwrap();
}

fn tid() -> u32 {
    crate::kernel::thread_id().unwrap()
}

#[inline(never)]
fn a_function_that_computes(rounds: u64) -> u64 {
    (0..rounds).fold(1, |sum: u64, i| black_box(sum.rotate_left(5) ^ i))
}

#[inline(never)]
fn a_caller_of_it(stop: &AtomicBool) -> u64 {
    let mut sum = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        sum ^= a_function_that_computes(10_000);
    }
    sum
}

#[test]
fn a_thread_that_computes_is_named_by_its_stack() {
    limited(|| {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let (started, start) = mpsc::channel();
        let computes = thread::spawn(move || {
            started.send(tid()).unwrap();
            a_caller_of_it(&stopped)
        });
        let tid = start.recv().unwrap();
        // Until the thread was given a core, and is past its start.
        let text = loop {
            let Some(samples) = sample(tid, TIME).unwrap() else {
                continue;
            };
            let text = samples.resolve().unwrap();
            if text.contains("a_function_that_computes") {
                break text;
            }
        };
        let lines: Vec<_> = text.lines().collect();
        let line = |name| lines.iter().position(|line| line.contains(name));
        let called = line("tests::a_function_that_computes").expect(&text);
        let caller = line("tests::a_caller_of_it").expect(&text);
        assert!(called < caller, "the innermost comes first:\n{text}");
        stop.store(true, Ordering::Relaxed);
        computes.join().unwrap();
    });
}

#[inline(never)]
fn a_function_that_reads_the_clock(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        black_box(Instant::now());
    }
}

/// The clock is read in the vDSO, which no file holds.
#[test]
fn a_thread_that_reads_the_clock_is_named_by_its_stack() {
    limited(|| {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let (started, start) = mpsc::channel();
        let computes = thread::spawn(move || {
            started.send(tid()).unwrap();
            a_function_that_reads_the_clock(&stopped);
        });
        let tid = start.recv().unwrap();
        let mut seen = 0;
        while seen < 10 {
            let Some(samples) = sample(tid, TIME).unwrap() else {
                continue;
            };
            let text = samples.resolve().unwrap();
            if text.starts_with("clock_gettime") || seen > 0 {
                seen += 1;
                // A stack that ended in the vDSO would be without.
                let caller = |line: &&str| line.contains("a_function_that_reads_the_clock");
                let line = text.lines().find(caller).expect(&text);
                assert!(!line.ends_with("samples"), "{text}");
            }
        }
        stop.store(true, Ordering::Relaxed);
        computes.join().unwrap();
    });
}

#[test]
fn a_thread_that_sleeps_has_no_stack() {
    limited(|| {
        let (wake, sleep) = mpsc::channel::<()>();
        let (started, start) = mpsc::channel();
        let sleeps = thread::spawn(move || {
            started.send(tid()).unwrap();
            let _ = sleep.recv();
        });
        let tid = start.recv().unwrap();
        // The state follows the name, which is in parentheses.
        let stat = || fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
        while !stat().contains(") S ") {
            thread::park_timeout(Duration::from_millis(1));
        }
        assert!(sample(tid, TIME).unwrap().is_none());
        drop(wake);
        sleeps.join().unwrap();
    });
}

#[test]
fn a_thread_that_has_ended_has_no_stack() {
    limited(|| {
        let ended = thread::spawn(tid).join().unwrap();
        assert!(sample(ended, TIME).unwrap().is_none());
    });
}

/// As where the id of one of our threads was reused: its stack would be named by our
/// functions.
#[test]
fn a_thread_of_another_process_has_no_stack() {
    limited(|| {
        let mut other = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let tid = other.id();
        let stat = || fs::read_to_string(format!("/proc/{tid}/schedstat")).unwrap();
        let before = stat();
        let samples = loop {
            let samples = sample(tid, TIME).unwrap();
            // It has run, so it was sampled.
            if stat() != before {
                break samples;
            }
        };
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(samples.is_none());
    });
}

fn frame(function: &str) -> Frame {
    Frame {
        function: function.into(),
        place: None,
    }
}

#[test]
fn of_the_runtimes_the_outer_frames_are_left_out_and_of_std_all_but_the_inner() {
    let inlined = |place: &str| Frame {
        function: "{async_fn#0}".into(),
        place: Some(place.into()),
    };
    let stack = [
        frame("core::slice::sort::stable::drift::sort"),
        frame("app::compare"),
        frame("core::slice::sort::stable::drift::sort"),
        frame("<app::Rows as tower::Service<R>>::call"),
        frame("tokio::runtime::task::harness::poll"),
        inlined("/home/app/src/main.rs:7"),
        inlined("tokio-1.47.0/src/runtime/task/core.rs:8"),
        frame("<F as axum::handler::Handler<M, S>>::call"),
        frame("<alloc::boxed::Box<dyn app::Job> as core::ops::FnOnce>::call_once"),
        frame("libc.so.6+0x9c1f5"),
    ];
    let text = shown(&[stack.to_vec()]);
    assert_eq!(text.lines().count(), 5, "{text}");
    assert!(
        text.ends_with("{async_fn#0} (/home/app/src/main.rs:7)"),
        "{text}"
    );
    // Where nothing else is there.
    let served = vec![
        frame("core::slice::sort::stable::sort"),
        frame("core::slice::sort::stable::sort"),
        frame("hyper::proto::h1::dispatch::poll"),
        frame("tokio::runtime::task::harness::poll"),
    ];
    let text = shown(&[served]);
    let lines = "core::slice::sort::stable::sort\nhyper::proto::h1::dispatch::poll";
    assert_eq!(text, lines, "recursion is one line");
    let stack = vec![frame("core::hint::spin_loop"), frame("libc.so.6+0x9c1f5")];
    assert_eq!(shown(&[stack]).lines().count(), 2);
}

#[test]
fn the_most_frequent_leaf_is_shown_and_how_many_samples_share_a_frame() {
    let stack = |leaf| vec![frame(leaf), frame("app::parse"), frame("app::handle")];
    let text = shown(&[stack("app::rare"), stack("app::often"), stack("app::often")]);
    let lines = "app::often, in 2 of 3 samples\napp::parse\napp::handle";
    assert_eq!(text, lines);
}

#[test]
fn of_a_deep_stack_both_ends_are_shown() {
    let stack: Vec<_> = (0..40)
        .map(|depth| frame(&format!("app::depth_{depth}")))
        .collect();
    let text = shown(&[stack]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), SHOWN + 1, "{text}");
    assert_eq!((lines[0], lines[5]), ("app::depth_0", "app::depth_5"));
    assert_eq!((lines[6], lines[7]), (".. 28 more", "app::depth_34"));
    assert_eq!(lines[12], "app::depth_39");
}
