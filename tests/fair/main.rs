//! Tenants of a lane, as its users see them: what each gets, and what becomes of their jobs.

mod contract;
mod ends;
mod storm;

#[path = "../../crates/core/tests/support/dice.rs"]
mod dice;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use twolane::metrics::KeyUsage;
use twolane::{CpuRuntime, Handle, Task};

/// On a lane of so many threads.
fn on_lane(threads: usize, test: impl AsyncFn(CpuRuntime, Keys)) {
    let io = tokio::runtime::Runtime::new().unwrap();
    let builder = CpuRuntime::builder().io_handle(io.handle().clone());
    let cpu = builder.worker_threads(threads).build().unwrap();
    let keys = Keys(cpu.handle().clone());
    io.block_on(test(cpu, keys));
}

/// Handles of keys, at the lane's default priority.
#[derive(Clone)]
struct Keys(Handle);

impl Keys {
    fn of(&self, key: &str) -> Handle {
        self.0.with_key(key)
    }

    /// A job that keeps a thread until the sender is dropped, and that has begun.
    fn keep_a_thread(&self, key: &str) -> (Sender<()>, Task<()>) {
        let (release, held): (_, Receiver<()>) = channel();
        let (begun, has_begun) = channel();
        let task = self.of(key).spawn_cpu(move || {
            begun.send(()).unwrap();
            let _ = held.recv();
        });
        has_begun.recv().unwrap();
        (release, task)
    }

    /// What the keys have used, the busiest first.
    fn busiest(&self) -> Vec<KeyUsage> {
        self.0.call_sites().keys().to_vec()
    }
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
