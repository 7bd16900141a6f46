//! All threads of `Normal` compute long jobs: a short one runs on a thread of `High` meanwhile
//! (`lane/help.rs`).

use std::future::poll_fn;
use std::sync::mpsc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use twolane_core::{Handle, JoinErrorKind, Priority};

use crate::computing::compute_for;
use crate::short_first::{LONG, long, short};
use crate::support::{self, Lanes, Stuck};
use crate::tokio_tasks::beside_its_part;

const THREADS: usize = 2;

fn sorted(threads: usize) -> Lanes {
    support::lanes_with(threads, |builder| builder.short_jobs_first(true))
}

/// A long job on each thread.
fn full(long: &Handle, threads: usize) -> Vec<Stuck<()>> {
    (0..threads).map(|_| Stuck::start(long)).collect()
}

fn thread_name() -> String {
    thread::current().name().unwrap().to_owned()
}

#[test]
fn a_short_job_does_not_wait_for_long_ones_that_run() {
    let Lanes { cpu, io: _io } = sorted(THREADS);
    let cpu = cpu.handle();
    let (short, long) = (short(cpu), long(cpu));
    let held = full(&long, THREADS);
    let queued = long.spawn_cpu(|| compute_for(LONG));
    let before = cpu.with_priority(Priority::High).metrics();
    for _ in 0..100 {
        let ran = short.spawn_cpu(|| {
            // It stays a job of its own priority: so is what it submits.
            let own = Handle::current();
            own.spawn_cpu(|| ()).detach();
            (thread_name(), own.metrics().running)
        });
        let (name, running) = ran.wait().unwrap();
        assert!(name.starts_with("cpu-high-"), "{name}");
        assert_eq!(running, THREADS as u64 + 1);
    }
    let after = cpu.with_priority(Priority::High).metrics();
    assert_eq!(after.submitted, before.submitted);
    held.into_iter().for_each(Stuck::end);
    queued.wait().unwrap();
    // The last help may not have ended yet.
    while short
        .spawn_cpu(thread_name)
        .wait()
        .unwrap()
        .contains("high")
    {}
}

#[test]
fn nor_for_those_of_a_line_that_is_not_known() {
    let Lanes { cpu, io: _io } = sorted(THREADS);
    let short = short(cpu.handle());
    let held = full(&cpu.handle().with_name("new"), THREADS);
    let (ran, runs) = mpsc::channel();
    // Until these have run for a millisecond.
    while runs.try_recv().is_err() {
        let ran = ran.clone();
        short.spawn_cpu(move || _ = ran.send(())).detach();
        thread::yield_now();
    }
    held.into_iter().for_each(Stuck::end);
}

#[test]
fn so_does_a_future_that_is_woken_in_its_own_step() {
    let Lanes { cpu, io: _io } = sorted(THREADS);
    let (short, long) = (short(cpu.handle()), long(cpu.handle()));
    let held = full(&long, THREADS);
    let mut steps = 0;
    let woken = poll_fn(move |cx| {
        steps += 1;
        cx.waker().wake_by_ref();
        match steps {
            1..4 => Poll::Pending,
            _ => Poll::Ready(thread_name()),
        }
    });
    let name = short.spawn(woken).wait().unwrap();
    assert!(name.starts_with("cpu-high-"), "{name}");
    held.into_iter().for_each(Stuck::end);
}

/// Its parts are at its own priority, and then so is the job.
#[test]
fn nor_does_one_that_has_parts() {
    let Lanes { cpu, io: _io } = sorted(THREADS);
    let (short, long) = (short(cpu.handle()), long(cpu.handle()));
    let held = full(&long, THREADS);
    for runtime in short.spawn(beside_its_part()).wait().unwrap() {
        assert!(runtime.starts_with("cpu-tokio-"), "{runtime}");
    }
    held.into_iter().for_each(Stuck::end);
}

/// What is taken for a short job may be long.
#[test]
fn a_high_job_does_not_wait_for_what_a_thread_helps_with() {
    let Lanes { cpu, io: _io } = sorted(THREADS);
    let cpu = cpu.handle();
    let (short, long) = (short(cpu), long(cpu));
    let mut held = full(&long, THREADS);
    held.push(Stuck::start(&short));
    let waits = short.spawn_cpu(|| ());
    let high = cpu.with_priority(Priority::High);
    for _ in 0..100 {
        high.spawn_cpu(|| ()).wait().unwrap();
        // One thread helps at a time.
        assert!(!waits.is_finished());
    }
    held.into_iter().for_each(Stuck::end);
    waits.wait().unwrap();
}

#[test]
fn a_lane_of_one_thread_has_no_help() {
    let Lanes { cpu, io: _io } = sorted(1);
    let (short, long) = (short(cpu.handle()), long(cpu.handle()));
    let held = full(&long, 1);
    let waits = short.spawn_cpu(thread_name);
    let high = cpu.handle().with_priority(Priority::High);
    (0..100).for_each(|_| high.spawn_cpu(|| ()).wait().unwrap());
    assert!(!waits.is_finished());
    held.into_iter().for_each(Stuck::end);
    let name = waits.wait().unwrap();
    assert!(!name.contains("high"), "{name}");
}

/// The jobs that wait, and the one that calls for a thread, end with the lane.
#[test]
fn a_lane_shuts_down_while_a_thread_helps() {
    for _ in 0..20 {
        let Lanes { cpu, io: _io } = sorted(THREADS);
        let (short, long) = (short(cpu.handle()), long(cpu.handle()));
        let held = full(&long, THREADS);
        let tasks: Vec<_> = (0..100).map(|_| short.spawn_cpu(|| ())).collect();
        drop(cpu);
        for task in tasks {
            let end = task.wait().map_err(|error| error.kind());
            assert!(
                matches!(end, Ok(()) | Err(JoinErrorKind::Shutdown)),
                "{end:?}"
            );
        }
        held.into_iter().for_each(Stuck::end);
    }
}

/// They ran out of their share of the threads' time, and waited for a long one: but the long ones have
/// all of the threads meanwhile.
#[test]
fn no_share_is_used_up_while_long_jobs_have_all_threads() {
    let Lanes { cpu, io: _io } = sorted(THREADS);
    let (short, long) = (short(cpu.handle()), long(cpu.handle()));
    let held = full(&long, THREADS);
    let queued = long.spawn_cpu(|| ());
    // More than a burst, and than what two long jobs leave.
    for _ in 0..3_000 {
        let part = Duration::from_micros(500);
        short.spawn_cpu(move || compute_for(part)).wait().unwrap();
    }
    assert!(!queued.is_finished());
    held.into_iter().for_each(Stuck::end);
    queued.wait().unwrap();
}

/// The job that helps has a turn of the jobs without a key then, gives it back, and ends.
#[test]
fn jobs_of_keys_at_high_and_help_end_beside_each_other() {
    let Lanes { cpu, io: _io } = sorted(THREADS);
    let (short, long) = (short(cpu.handle()), long(cpu.handle()));
    let held = full(&long, THREADS);
    let high = cpu.handle().with_priority(Priority::High);
    let keyed = high.with_key("a");
    let busy = full(&high, THREADS);
    let of_key: Vec<_> = (0..10).map(|_| keyed.spawn_cpu(|| ())).collect();
    let waits = short.spawn_cpu(|| ());
    busy.into_iter().for_each(Stuck::end);
    of_key.into_iter().for_each(|task| task.wait().unwrap());
    let plain = high.spawn_cpu(|| ());
    plain.wait().unwrap();
    held.into_iter().for_each(Stuck::end);
    waits.wait().unwrap();
}

#[test]
fn a_panic_is_that_of_the_short_job_alone() {
    let Lanes { cpu, io: _io } = sorted(THREADS);
    let (short, long) = (short(cpu.handle()), long(cpu.handle()));
    let held = full(&long, THREADS);
    for _ in 0..10 {
        let error = short.spawn_cpu(|| panic!("planned")).wait().unwrap_err();
        assert_eq!(error.to_string(), "the job panicked: planned");
        let name = short.spawn_cpu(thread_name).wait().unwrap();
        assert!(name.starts_with("cpu-high-"), "{name}");
    }
    assert_eq!(short.metrics().panicked, 10);
    held.into_iter().for_each(Stuck::end);
}

/// The threads of its own priority compute the long jobs.
#[test]
fn rayons_parts_run_at_high_and_an_install_waits() {
    let Lanes { cpu, io: _io } = sorted(THREADS);
    let (short, long) = (short(cpu.handle()), long(cpu.handle()));
    let held = full(&long, THREADS);
    let parts = short.spawn_cpu(|| rayon::broadcast(|_| thread_name()));
    let parts = parts.wait().unwrap();
    assert_eq!(parts.len(), THREADS);
    assert!(parts.iter().all(|name| name.starts_with("cpu-high-")));
    let (begins, begun) = mpsc::channel();
    let installs = short.spawn_cpu(move || {
        begins.send(thread_name()).unwrap();
        Handle::current().install(thread_name).unwrap()
    });
    assert!(begun.recv().unwrap().starts_with("cpu-high-"));
    assert!(!installs.is_finished());
    held.into_iter().for_each(Stuck::end);
    let name = installs.wait().unwrap();
    assert!(!name.contains("high"), "{name}");
}
