//! A lane whose queue is never empty, or is empty at last.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use super::wait::wait_until;
use twolane_core::Handle;

/// Until it is dropped, each of its jobs submits the next.
#[derive(Default)]
pub struct Busy(Arc<Chains>);

#[derive(Default)]
struct Chains {
    ran: AtomicUsize,
    over: AtomicBool,
}

impl Busy {
    pub fn with(chains: usize, cpu: &Handle) -> Self {
        let busy = Self::default();
        busy.start(chains, cpu);
        busy
    }

    pub fn start(&self, chains: usize, cpu: &Handle) {
        (0..chains).for_each(|_| next(cpu.clone(), self.0.clone()));
    }

    /// How many of the jobs have run so far.
    pub fn count(&self) -> impl Fn() -> usize + Send + use<> {
        let chains = self.0.clone();
        move || chains.ran.load(SeqCst)
    }
}

fn next(cpu: Handle, chains: Arc<Chains>) {
    let again = cpu.clone();
    let job = move || {
        chains.ran.fetch_add(1, SeqCst);
        if !chains.over.load(SeqCst) {
            next(again, chains);
        }
    };
    cpu.spawn_cpu(job).detach();
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.over.store(true, SeqCst);
    }
}

/// Until no job has anything to do. A snapshot is not of one moment while jobs come and go; two
/// that agree are.
pub fn wait_for_idle(cpu: &Handle) {
    let idle = || {
        let now = cpu.metrics();
        (now.queued + now.running == 0).then(|| now.to_string())
    };
    wait_until(|| idle().is_some_and(|now| idle() == Some(now)));
}
