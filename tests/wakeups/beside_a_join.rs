//! What does a job cost while a worker of the rayon backend waits inside another?
//!
//! A worker that waits in `rayon::join` sleeps where rayon's idle workers sleep, and
//! rayon wakes its sleeper with the lowest number. Where that was the waiting one, it
//! took each drain job (what makes a worker active), could not run it on top of its
//! own job, and gave it to the control thread, which spawned it again: to the same
//! worker, over and over, with a pause in between. Each job that came while
//! the `join` lasted paid for several such trips, hundreds on a busy machine, and
//! waited for as many pauses, although another worker was idle. Drain jobs that go to
//! rayon at large while a worker of the lane waits in a job bring that back.

use crate::threads;
use std::sync::mpsc;
use std::time::Duration;

use crate::lanes_without_interrupts;
use crate::support::{Lanes, Stuck, thread_name, time_limit};
use twolane::{Backend, Task};

const SMALL_JOBS: u64 = 200;
/// One for four jobs. It was three or more for each.
const MOST_TRIPS: u64 = SMALL_JOBS / 4;

/// How often the control thread of the lane of that name went to sleep.
fn trips(lane: &str) -> u64 {
    let name = format!("{lane}-control");
    loop {
        if let Some((_, trips)) = threads::sleeps(&name).pop_last() {
            return trips;
        }
        // A thread takes on its name when it first runs.
        std::thread::yield_now();
    }
}

/// A job in the middle of a `join` whose second half another worker has.
struct Waiting {
    job: Task<()>,
    let_go: mpsc::Sender<()>,
    /// The worker that has the second half.
    thief: String,
}

/// Gets the job onto worker 0, and its second half onto another one. Each worker has
/// a job that is stuck, so that none is idle but the one that is let go of next.
fn on_worker_0(lanes: &Lanes, lane: &str) -> Waiting {
    let cpu = lanes.cpu.handle();
    let mut occupied: Vec<_> = (0..cpu.worker_threads())
        .map(|_| {
            let (told, is_on) = mpsc::channel();
            let (let_go, wait) = mpsc::channel::<()>();
            let task = cpu.spawn_cpu(move || {
                told.send(thread_name()).unwrap();
                wait.recv().unwrap();
            });
            (is_on.recv().unwrap(), task, let_go)
        })
        .collect();
    let mut free = |of_these: &dyn Fn(&str) -> bool| {
        let found = occupied.iter().position(|(on, ..)| of_these(on));
        let (on, task, let_go) = occupied.swap_remove(found.expect("one on each worker"));
        let_go.send(()).unwrap();
        task.wait().unwrap();
        on
    };
    let waiter = format!("{lane}-0");
    free(&|on| on == waiter);
    let (told, is_on) = mpsc::channel();
    let (let_go, wait) = mpsc::channel();
    let (stolen, is_stolen) = mpsc::channel();
    let (waits, is_waiting) = mpsc::channel();
    let job = cpu.spawn_cpu(move || {
        told.send(thread_name()).unwrap();
        rayon::join(
            // It ends when another worker has the other half, and then the `join` waits.
            move || waits.send(is_stolen.recv().unwrap()).unwrap(),
            move || {
                stolen.send(thread_name()).unwrap();
                wait.recv().unwrap();
            },
        );
    });
    assert_eq!(is_on.recv().unwrap(), waiter);
    let freed = free(&|_| true);
    let thief = is_waiting.recv().unwrap();
    assert_eq!(thief, freed);
    for (_, task, let_go) in occupied {
        let_go.send(()).unwrap();
        task.wait().unwrap();
    }
    Waiting { job, let_go, thief }
}

fn small_jobs_beside_a_join(lane: &str, workers: usize) {
    let lanes = lanes_without_interrupts(Backend::Rayon, workers, lane);
    let waiting = on_worker_0(&lanes, lane);
    let waiter = format!("{lane}-0");
    let before = trips(lane);
    let (mut jobs, mut taken) = (0, 0);
    while jobs < SMALL_JOBS && taken < MOST_TRIPS {
        // A worker looks around before it sleeps, the waiting one as well. While all
        // are asleep rayon has to choose. (Not a busy look: they need the core.)
        while !(0..workers).all(|n| threads::is_asleep(&format!("{lane}-{n}"))) {
            std::thread::sleep(Duration::from_micros(200));
        }
        let on = lanes.cpu.spawn_cpu(thread_name).wait().unwrap();
        assert!(on != waiter, "a job started inside another");
        assert!(on != waiting.thief, "a job started inside another's child");
        jobs += 1;
        taken = trips(lane) - before;
    }
    assert!(!waiting.job.is_finished());
    waiting.let_go.send(()).unwrap();
    waiting.job.wait().unwrap();
    assert!(
        taken < MOST_TRIPS,
        "{workers} workers: the control thread was woken {taken} times for {jobs} jobs"
    );
}

#[test]
fn jobs_beside_a_join_with_one_worker_left_do_not_go_by_the_control_thread() {
    let _limit = time_limit();
    small_jobs_beside_a_join("three", 3);
}

#[test]
fn jobs_beside_a_join_with_two_workers_left_do_not_go_by_the_control_thread() {
    let _limit = time_limit();
    small_jobs_beside_a_join("four", 4);
}

/// Where no worker is left, a job waits for the end of the `join`, and runs then.
#[test]
fn a_job_that_no_worker_is_left_for_runs_after_the_join() {
    let _limit = time_limit();
    let lane = "two";
    let lanes = lanes_without_interrupts(Backend::Rayon, 2, lane);
    for _ in 0..20 {
        let waiting = on_worker_0(&lanes, lane);
        let queued = lanes.cpu.spawn_cpu(thread_name);
        waiting.let_go.send(()).unwrap();
        waiting.job.wait().unwrap();
        queued.wait().unwrap();
    }
    // All of the lane's workers are there again.
    let all: Vec<_> = (0..2).map(|_| Stuck::start(&lanes.cpu.handle())).collect();
    for stuck in all {
        let (task, let_go) = stuck.split();
        let_go.send(()).unwrap();
        task.wait().unwrap();
    }
}
