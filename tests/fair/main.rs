//! Tenants of a lane, as its users see them: what each gets, and what becomes of their jobs. (All of
//! it at once: `storm`.)

mod bounds;
mod shares;

#[path = "../../crates/core/tests/support/mod.rs"]
mod support;

use std::sync::{Arc, Mutex};

use support::limit::TimeLimit;
use support::{Lanes, lanes_with, time_limit};
use twolane::metrics::KeyUsage;
use twolane::{Builder, Handle, Key, Task};

/// A lane, and handles of keys at its default priority.
struct Keys {
    lanes: Lanes,
    _limit: TimeLimit,
}

impl Keys {
    /// On so many threads.
    fn on(threads: usize) -> Self {
        Self::with(threads, |builder| builder)
    }

    /// The same, with settings of the test's own.
    fn with(threads: usize, set: impl FnOnce(Builder) -> Builder) -> Self {
        Self {
            _limit: time_limit(),
            lanes: lanes_with(threads, |builder| set(builder.short_jobs_first(true))),
        }
    }

    /// Of jobs without a key.
    fn plain(&self) -> &Handle {
        self.lanes.cpu.handle()
    }

    fn of(&self, key: &str) -> Handle {
        self.plain().with_key(key)
    }

    /// Of a key that may have so many jobs.
    fn bounded(&self, key: &str, jobs: u16) -> Handle {
        self.plain().with_key(Key::new(key).with_max_jobs(jobs))
    }

    /// What the keys have used, the busiest first.
    fn busiest(&self) -> Vec<KeyUsage> {
        self.plain().call_sites().keys().to_vec()
    }
}

/// Waits for all of them.
fn all<T>(tasks: impl IntoIterator<Item = Task<T>>) -> Vec<T> {
    tasks.into_iter().map(|task| task.wait().unwrap()).collect()
}

/// What jobs write down.
#[derive(Clone)]
struct Notes<T>(Arc<Mutex<Vec<T>>>);

impl<T: Clone + Send + 'static> Notes<T> {
    fn new() -> Self {
        Self(Arc::default())
    }

    /// A job that takes so long, and notes `what`.
    fn job(&self, steps: u64, what: T) -> impl FnOnce() + Send + use<T> {
        let notes = self.0.clone();
        move || {
            spin(steps);
            notes.lock().unwrap().push(what);
        }
    }

    fn read(&self) -> Vec<T> {
        self.0.lock().unwrap().clone()
    }
}

fn spin(steps: u64) {
    (0..steps).for_each(|n| _ = std::hint::black_box(n));
}
