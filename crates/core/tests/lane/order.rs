//! In which order do the jobs run? In that of the queue, whichever thread takes them; and
//! a future that returns from a wait does not let later jobs pass.
//!
//! With each job in a Tokio task of its own, a worker took half of Tokio's shared queue into its local
//! one and then computed. The other worker emptied the shared queue, new jobs included, before it looked
//! there. So a future that had awaited nothing at all waited for many long jobs.

use std::sync::mpsc;

use crate::stepped::Stepped;
use crate::support::Stuck;
use crate::support::wait::wait_until;
use futures::future::{BoxFuture, FutureExt};
use tokio::sync::oneshot;
use twolane_core::Task;

type Job = Box<dyn FnOnce() + Send>;

/// What a test sees of [`jobs`].
struct Witness {
    reached: mpsc::Receiver<()>,
    open: mpsc::Sender<()>,
    ran: mpsc::Receiver<usize>,
}

/// The first one keeps the thread that takes it. The others note that they ran.
fn jobs(n: usize) -> (Vec<Job>, Witness) {
    let (reaches, reached) = mpsc::channel();
    let (open, opened) = mpsc::channel();
    let (notes, ran) = mpsc::channel();
    let first: Job = Box::new(move || {
        reaches.send(()).unwrap();
        opened.recv().unwrap();
    });
    let others = (1..n).map(|job| -> Job {
        let notes = notes.clone();
        Box::new(move || notes.send(job).unwrap())
    });
    let jobs = std::iter::once(first).chain(others).collect();
    let witness = Witness { reached, open, ran };
    (jobs, witness)
}

/// `queue` queues the jobs while both threads of the lane are stuck. Then one of them
/// takes the first job. Returns the order in which the other one runs the rest.
fn order(lanes: &Stepped, witness: Witness, queue: impl FnOnce() -> Vec<Task<()>>) -> Vec<usize> {
    let [one, other] = [(); 2].map(|()| Stuck::start(lanes.cpu.handle()).split());
    let mut tasks = queue();
    let first = tasks.remove(0);
    one.1.send(()).unwrap();
    witness.reached.recv().unwrap();
    other.1.send(()).unwrap();
    for task in tasks.into_iter().chain([one.0, other.0]) {
        task.wait().unwrap();
    }
    witness.open.send(()).unwrap();
    first.wait().unwrap();
    witness.ran.try_iter().collect()
}

/// Woken by a thread that belongs to neither lane, and by the I/O lane.
#[test]
fn futures_that_return_from_a_wait_run_before_later_jobs() {
    return_before_later_jobs(|go| go.map(Result::unwrap).boxed());
    return_before_later_jobs(|go| {
        async { twolane_core::spawn_io(go).await.unwrap().unwrap() }.boxed()
    });
}

fn return_before_later_jobs(wait: fn(oneshot::Receiver<()>) -> BoxFuture<'static, ()>) {
    let lanes = Stepped::on(2);
    let (mut jobs, witness) = jobs(12);
    let later = jobs.split_off(6);
    let suspend = |job: Job| {
        let (go, woken) = oneshot::channel();
        let wait = wait(woken);
        let task = lanes.cpu.spawn(async move {
            wait.await;
            job();
        });
        (go, task)
    };
    let (go, suspended): (Vec<_>, Vec<_>) = jobs.into_iter().map(suspend).unzip();
    wait_until(|| lanes.cpu.handle().metrics().suspended == 6);
    // The I/O lane waits for `go`, too.
    lanes.until_idle();
    let order = order(&lanes, witness, || {
        for go in go {
            go.send(()).unwrap();
            // Each has been woken before the next.
            lanes.until_idle();
        }
        let later = later.into_iter().map(|job| lanes.cpu.spawn_cpu(job));
        suspended.into_iter().chain(later).collect()
    });
    assert_eq!(order, (1..12).collect::<Vec<_>>());
}
