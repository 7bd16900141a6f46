//! The calls of a store, and the threads that made them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use object_store::path::Path;
use tokio::sync::Notify;
use twolane_s3::seen::See;

use crate::support::thread_name;

#[derive(Clone, Default)]
pub struct Calls(Arc<Inner>);

#[derive(Default)]
struct Inner {
    seen: Mutex<Vec<Call>>,
    changed: Notify,
}

struct Call {
    thread: String,
    path: String,
    writes: bool,
}

impl See for Calls {
    fn call(&self, path: &Path, writes: bool) {
        let (thread, path) = (thread_name(), path.to_string());
        let call = Call {
            thread,
            path,
            writes,
        };
        self.0.seen.lock().unwrap().push(call);
        self.0.changed.notify_waiters();
    }
}

impl Calls {
    /// The threads that have called for what lies below that path.
    pub fn threads(&self, below: &str) -> BTreeSet<String> {
        self.of(|call| call.path.starts_with(below))
    }

    pub fn writers(&self, below: &str) -> BTreeSet<String> {
        self.of(|call| call.writes && call.path.starts_with(below))
    }

    fn of(&self, is: impl Fn(&Call) -> bool) -> BTreeSet<String> {
        let seen = self.0.seen.lock().unwrap();
        let calls = seen.iter().filter(|call| is(call));
        calls.map(|call| call.thread.clone()).collect()
    }

    /// Waits for a write by a thread of the lane below that path.
    pub async fn until_the_lane_writes(&self, below: &str) {
        loop {
            let changed = self.0.changed.notified();
            if self
                .writers(below)
                .iter()
                .any(|thread| thread.starts_with("cpu-"))
            {
                return;
            }
            changed.await;
        }
    }
}
