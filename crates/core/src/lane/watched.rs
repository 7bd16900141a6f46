//! The jobs of a lane, as the watch of its I/O lane sees them.

use std::time::{Duration, Instant};

use stallwatch::{Entered, Name, Pool};

use super::Level;
use crate::priority::Priority;

const FUTURE: usize = 0;
const CLOSURE: usize = 1;
const URGENT_CLOSURE: usize = 2;

pub(super) fn watched_jobs() -> [Pool; 3] {
    // One that computes for this long without a pause holds up the jobs of its thread.
    let futures = Pool::new(
        "Await `twolane::yield_if_due()` in its loop, or compute in `spawn_cpu`",
    )
    .with_limit(Duration::from_millis(100))
    .of_futures()
    .offload_by(
        "Compute on the CPU lane: `cpu.spawn_cpu(move || ..).await?`",
        "If a job has spawned it by `tokio::spawn`: call `Handle::spawn` there, or wrap the \
                 job's future in `in_cpu_context`",
    );
    // Computing is what they are for, unless nothing waits for them any more.
    let closures = Pool::new(
        "Its deadline has passed: ask `job.checkpoint()?` in its loop (`spawn_cpu_with`)",
    );
    // Urgent jobs are short.
    let urgent =
        Pool::new("Other urgent jobs wait: give it `Priority::Normal` or `Low`, or cut it")
            .with_limit(Duration::from_secs(1));
    [futures, closures, urgent]
}

impl Level {
    // Apart, so that a step inlines no more than the look at one atomic.
    #[inline(never)]
    pub(super) fn enter_watched(
        &self,
        site: Name,
        is_closure: bool,
        deadline: Option<Instant>,
    ) -> Option<Entered> {
        let kind = match (is_closure, self.priority) {
            (false, _) => FUTURE,
            (true, Priority::High) => URGENT_CLOSURE,
            (true, _) => CLOSURE,
        };
        self.lane.watched_jobs[kind].enter(site, deadline)
    }
}
