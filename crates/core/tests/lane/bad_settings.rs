//! A setting that can't be is an error that names it, and what may be.

use std::time::Duration;

use crate::support::{gives, time_limit};
use stallwatch::Watch;
use twolane_core::{Builder, CpuRuntime, Niceness, Priority};

type Set = fn(Builder) -> Builder;

/// What the error begins with, and what it says besides.
const BAD: &[(&str, &str, Set)] = &[
    ("Builder::worker_threads(0), of High: ", "", |lane| {
        lane.worker_threads(0)
    }),
    ("Builder::worker_threads(", "", |lane| {
        lane.worker_threads(usize::MAX)
    }),
    ("Builder::thread_stack_size(4096): ", "65536", |lane| {
        lane.thread_stack_size(4096)
    }),
    (
        "Builder::queue_limit(Low, 0): a limit is 1 to ",
        " jobs; leave it out for none",
        |lane| lane.queue_limit(Priority::Low, 0),
    ),
    (
        "Builder::max_wait(Normal, 900µs): ",
        "1ms to 600s",
        |lane| lane.max_wait(Priority::Normal, Duration::from_micros(900)),
    ),
    ("Builder::max_wait(Low, 601s): ", "leave it out", |lane| {
        lane.max_wait(Priority::Low, Duration::from_secs(601))
    }),
    ("", "500µs", |lane| {
        lane.watch_io(Watch::new().threshold(Duration::from_micros(500)))
    }),
    ("Niceness::of(Low, 20): ", "", |lane| {
        lane.niceness(Niceness::default().of(Priority::Low, 20))
    }),
    ("Niceness::of(Normal, 5): 8 to 19", "less", |lane| {
        lane.niceness(Niceness::default().of(Priority::Normal, 5))
    }),
    ("Niceness::of(Low, 18): 19 to 19", "", |lane| {
        let idle = Niceness::default().idle_class_for_low(true);
        lane.niceness(idle.of(Priority::Low, 18))
    }),
];

const GOOD: [Set; 1] = [|lane| lane.watch_io(Watch::new().threshold(Duration::from_millis(10)))];

#[test]
fn a_bad_one_is_an_error_that_names_it() {
    let _limit = time_limit();
    let io = tokio::runtime::Runtime::new().unwrap();
    let builder = || CpuRuntime::builder().io_handle(io.handle().clone());
    for (begin, besides, set) in BAD {
        let error = set(builder()).build().unwrap_err().to_string();
        assert!(
            error.starts_with(begin) && error.contains(besides),
            "{error}"
        );
    }
    for set in GOOD {
        let cpu = set(builder()).build().unwrap();
        assert_eq!(cpu.spawn_cpu(gives(1)).wait().unwrap(), 1);
    }
}
