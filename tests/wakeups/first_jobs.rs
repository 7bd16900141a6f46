//! How often is the control thread woken by the first jobs of a priority?
//!
//! Once. It was woken by each job that was queued before the threads of its priority had
//! started, and on `Backend::Runtime` each of those wakes went over the whole queue: a
//! million first `Low` jobs from sixteen threads cost it 1.5 s of CPU time, beside the
//! I/O lane and at its weight.

use std::sync::Mutex;
use std::sync::mpsc;

use twolane::Priority;

use crate::support::{BOTH, lanes_with, time_limit};
use crate::threads;

const JOBS: usize = 100;

#[test]
fn the_first_jobs_of_a_priority_wake_the_control_thread_once() {
    let _limit = time_limit();
    for (backend, name) in BOTH.into_iter().zip(["first-a", "first-b"]) {
        let (starts, has_started) = mpsc::channel();
        let (let_start, wait) = mpsc::channel();
        let wait = Mutex::new(wait);
        // The thread of `Normal`, which `build` starts.
        let_start.send(()).unwrap();
        let lanes = lanes_with(backend, 1, |builder| {
            builder.thread_name(name).on_thread_start(move || {
                starts.send(()).unwrap();
                wait.lock().unwrap().recv().unwrap();
            })
        });
        has_started.recv().unwrap();
        let low = lanes.cpu.handle().with_priority(Priority::Low);
        let first = low.spawn_cpu(|| ());
        has_started.recv().unwrap();

        let control = format!("{name}-control");
        let wakes = || threads::sleeps(&control).into_values().sum::<u64>();
        let sleep = || {
            while !threads::is_asleep(&control) {
                std::thread::yield_now();
            }
        };
        sleep();
        let before = wakes();
        let jobs: Vec<_> = (0..JOBS)
            .map(|_| {
                let job = low.spawn_cpu(|| ());
                sleep();
                job
            })
            .collect();
        let woken = wakes() - before;
        assert!(woken <= 2, "{backend:?}: woken {woken} times");

        let_start.send(()).unwrap();
        for job in jobs.into_iter().chain([first]) {
            job.wait().unwrap();
        }
    }
}
