//! A worker that waits inside a job.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use std::sync::mpsc;

use crate::support::{Lanes, Stuck, thread_name};
use twolane_core::Task;

/// A job in the middle of a `join` whose second half another worker has.
pub struct Waiting {
    pub job: Task<()>,
    let_go: mpsc::Sender<()>,
    /// The worker that has the second half. The job is on the lane's worker 0.
    pub thief: String,
}

impl Waiting {
    /// Gets the job onto worker 0, and its second half onto another one. Each worker has
    /// a job that is stuck, so that none is idle but the one that is let go of next.
    pub fn on_worker_0(lanes: &Lanes, lane: &str) -> Self {
        let cpu = lanes.cpu.handle().clone();
        let mut occupied: Vec<_> = (0..cpu.worker_threads())
            .map(|_| Stuck::start(&cpu))
            .collect();
        let mut free = |of_these: &dyn Fn(&str) -> bool| {
            let found = occupied.iter().position(|it| of_these(&it.on));
            let stuck = occupied.swap_remove(found.expect("one on each worker"));
            let on = stuck.on.clone();
            stuck.end();
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
        occupied.into_iter().for_each(Stuck::end);
        Self { job, let_go, thief }
    }

    pub fn end(self) {
        assert!(!self.job.is_finished());
        self.let_go.send(()).unwrap();
        self.job.wait().unwrap();
    }
}
