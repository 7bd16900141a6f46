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
use crate::support::{self, Lanes, Stuck, nothing, thread_name};
use crate::tokio_tasks::beside_its_part;

const THREADS: usize = 2;

/// A job on each thread.
fn on_each(handle: &Handle) -> Vec<Stuck<()>> {
    let threads = 0..handle.worker_threads();
    threads.map(|_| Stuck::start(handle)).collect()
}

fn end(held: Vec<Stuck<()>>) {
    held.into_iter().for_each(Stuck::end);
}

/// A lane whose threads of `Normal` all run long jobs, and handles for jobs that it knows to be short,
/// or long, and for `High`.
struct Full {
    lanes: Lanes,
    short: Handle,
    long: Handle,
    high: Handle,
    held: Vec<Stuck<()>>,
}

fn full(threads: usize) -> Full {
    let lanes = support::lanes_with(threads, |builder| builder.short_jobs_first(true));
    let cpu = lanes.cpu.handle();
    let (short, long, high) = (short(cpu), long(cpu), cpu.with_priority(Priority::High));
    let held = on_each(&long);
    Full {
        lanes,
        short,
        long,
        high,
        held,
    }
}

fn is_at_high(thread: &str) -> bool {
    thread.starts_with("cpu-high-")
}

#[test]
fn a_short_job_does_not_wait_for_long_ones_that_run() {
    let lane = full(THREADS);
    let queued = lane.long.spawn_cpu(|| compute_for(LONG));
    let before = lane.high.metrics();
    for _ in 0..100 {
        let ran = lane.short.spawn_cpu(|| {
            // It stays a job of its own priority: so is what it submits.
            let own = Handle::current();
            own.spawn_cpu(nothing).detach();
            (thread_name(), own.metrics().running)
        });
        let (name, running) = ran.wait().unwrap();
        assert!(is_at_high(&name), "{name}");
        assert_eq!(running, THREADS as u64 + 1);
    }
    assert_eq!(lane.high.metrics().submitted, before.submitted);
    end(lane.held);
    queued.wait().unwrap();
    // The last help may not have ended yet.
    while is_at_high(&lane.short.spawn_cpu(thread_name).wait().unwrap()) {}
}

#[test]
fn nor_for_those_of_a_line_that_is_not_known() {
    let lane = full(THREADS);
    end(lane.held);
    let held = on_each(&lane.lanes.cpu.handle().with_name("new"));
    let (ran, runs) = mpsc::channel();
    // Until these have run for a millisecond.
    while runs.try_recv().is_err() {
        let ran = ran.clone();
        lane.short.spawn_cpu(move || _ = ran.send(())).detach();
        thread::yield_now();
    }
    end(held);
}

#[test]
fn so_does_a_future_that_is_woken_in_its_own_step() {
    let lane = full(THREADS);
    let mut steps = 0;
    let woken = poll_fn(move |cx| {
        steps += 1;
        cx.waker().wake_by_ref();
        match steps {
            1..4 => Poll::Pending,
            _ => Poll::Ready(thread_name()),
        }
    });
    let name = lane.short.spawn(woken).wait().unwrap();
    assert!(is_at_high(&name), "{name}");
    end(lane.held);
}

/// Its parts are at its own priority, and then so is the job.
#[test]
fn nor_does_one_that_has_parts() {
    let lane = full(THREADS);
    for runtime in lane.short.spawn(beside_its_part()).wait().unwrap() {
        assert!(runtime.starts_with("cpu-tokio-"), "{runtime}");
    }
    end(lane.held);
}

/// What is taken for a short job may be long.
#[test]
fn a_high_job_does_not_wait_for_what_a_thread_helps_with() {
    let mut lane = full(THREADS);
    lane.held.push(Stuck::start(&lane.short));
    let waits = lane.short.spawn_cpu(nothing);
    for _ in 0..100 {
        lane.high.spawn_cpu(nothing).wait().unwrap();
        // One thread helps at a time.
        assert!(!waits.is_finished());
    }
    end(lane.held);
    waits.wait().unwrap();
}

#[test]
fn a_lane_of_one_thread_has_no_help() {
    let lane = full(1);
    let waits = lane.short.spawn_cpu(thread_name);
    (0..100).for_each(|_| lane.high.spawn_cpu(nothing).wait().unwrap());
    assert!(!waits.is_finished());
    end(lane.held);
    let name = waits.wait().unwrap();
    assert!(!is_at_high(&name), "{name}");
}

/// The jobs that wait, and the one that calls for a thread, end with the lane.
#[test]
fn a_lane_shuts_down_while_a_thread_helps() {
    for _ in 0..20 {
        let lane = full(THREADS);
        let tasks: Vec<_> = (0..100).map(|_| lane.short.spawn_cpu(nothing)).collect();
        drop(lane.lanes.cpu);
        for task in tasks {
            let end = task.wait().map_err(|error| error.kind());
            let may_be = [Ok(()), Err(JoinErrorKind::Shutdown)];
            assert!(may_be.contains(&end), "{end:?}");
        }
        end(lane.held);
    }
}

/// They ran out of their share of the threads' time, and waited for a long one: but the long ones have
/// all of the threads meanwhile.
#[test]
fn no_share_is_used_up_while_long_jobs_have_all_threads() {
    let lane = full(THREADS);
    let queued = lane.long.spawn_cpu(nothing);
    // More than a burst, and than what two long jobs leave.
    for _ in 0..3_000 {
        let part = || compute_for(Duration::from_micros(500));
        lane.short.spawn_cpu(part).wait().unwrap();
    }
    assert!(!queued.is_finished());
    end(lane.held);
    queued.wait().unwrap();
}

/// The job that helps has a turn of the jobs without a key then, gives it back, and ends.
#[test]
fn jobs_of_keys_at_high_and_help_end_beside_each_other() {
    let lane = full(THREADS);
    let keyed = lane.high.with_key("a");
    let busy = on_each(&lane.high);
    let of_key: Vec<_> = (0..10).map(|_| keyed.spawn_cpu(nothing)).collect();
    let waits = lane.short.spawn_cpu(nothing);
    end(busy);
    of_key.into_iter().for_each(|task| task.wait().unwrap());
    lane.high.spawn_cpu(nothing).wait().unwrap();
    end(lane.held);
    waits.wait().unwrap();
}

#[test]
fn a_panic_is_that_of_the_short_job_alone() {
    let lane = full(THREADS);
    for nth in 0..10 {
        // By a name of its own: a panic may take so long that those of the name are long ones.
        let panics = lane.short.with_name(&format!("panics {nth}"));
        let error = panics.spawn_cpu(|| panic!("planned")).wait();
        let error = error.unwrap_err();
        assert_eq!(error.to_string(), "the job panicked: planned");
        let name = lane.short.spawn_cpu(thread_name).wait().unwrap();
        assert!(is_at_high(&name), "{name}");
    }
    assert_eq!(lane.short.metrics().panicked, 10);
    end(lane.held);
}

/// The threads of its own priority compute the long jobs.
#[test]
fn rayons_parts_run_at_high_and_an_install_waits() {
    let lane = full(THREADS);
    let parts = lane.short.spawn_cpu(|| rayon::broadcast(|_| thread_name()));
    let parts = parts.wait().unwrap();
    assert_eq!(parts.len(), THREADS);
    assert!(parts.iter().all(|name| is_at_high(name)), "{parts:?}");
    let (begins, begun) = mpsc::channel();
    let installs = lane.short.spawn_cpu(move || {
        begins.send(thread_name()).unwrap();
        Handle::current().install(thread_name).unwrap()
    });
    assert!(is_at_high(&begun.recv().unwrap()));
    assert!(!installs.is_finished());
    end(lane.held);
    let name = installs.wait().unwrap();
    assert!(!is_at_high(&name), "{name}");
}
