//! Ends a bench whose contender hangs, and names the contender.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

pub struct Watchdog {
    bounds: Sender<Option<(String, Duration)>>,
}

impl Watchdog {
    pub fn start() -> Self {
        let (bounds, receiver) = mpsc::channel::<Option<(String, Duration)>>();
        thread::spawn(move || {
            let mut next = receiver.recv();
            // An error is the end of the bench.
            while let Ok(bound_of) = next {
                let Some((what, bound)) = bound_of else {
                    next = receiver.recv();
                    continue;
                };
                next = match receiver.recv_timeout(bound) {
                    Ok(bound_of) => Ok(bound_of),
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        eprintln!("{what}: not done after {bound:?}, given up");
                        // No destructors: they would wait for what hangs.
                        std::process::abort();
                    }
                };
            }
        });
        Self { bounds }
    }

    /// Aborts the process unless `what` ends within `bound`.
    pub fn allow(&self, what: String, bound: Duration) {
        self.bounds.send(Some((what, bound))).unwrap();
    }

    pub fn rest(&self) {
        self.bounds.send(None).unwrap();
    }
}
