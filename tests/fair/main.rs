//! Tenants of a lane, as its users see them: what each gets, and what becomes of their jobs.

mod contract;
mod ends;
mod storm;

#[path = "../../crates/core/tests/support/dice.rs"]
mod dice;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use twolane::fair::FairTask;
use twolane::{Backend, CpuRuntime, Fair, Priority};

/// On both backends, with so many threads.
fn on_both(threads: usize, test: impl AsyncFn(CpuRuntime, Fair<&'static str>)) {
    for backend in [Backend::Rayon, Backend::Runtime] {
        let io = tokio::runtime::Runtime::new().unwrap();
        let builder = CpuRuntime::builder().io_handle(io.handle().clone());
        let builder = builder.backend(backend);
        let cpu = builder.worker_threads(threads).build().unwrap();
        let fair = Fair::new(&cpu.handle().with_priority(Priority::Normal));
        io.block_on(test(cpu, fair));
    }
}

/// A job that keeps a thread until the sender is dropped, and that has begun.
fn keep_a_thread(fair: &Fair<&'static str>, key: &'static str) -> (Sender<()>, FairTask<()>) {
    let (release, held): (_, Receiver<()>) = channel();
    let (begun, has_begun) = channel();
    let task = fair.key(key).spawn_cpu(move || {
        begun.send(()).unwrap();
        let _ = held.recv();
    });
    has_begun.recv().unwrap();
    (release, task)
}

/// What jobs write down.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<&'static str>>>);

impl Notes {
    fn note(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }

    fn read(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().clone()
    }
}
