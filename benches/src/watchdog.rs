//! Ends a bench whose contender hangs, and names the contender.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

pub struct Watchdog {
    orders: Sender<Option<(String, Duration)>>,
}

impl Watchdog {
    pub fn start() -> Self {
        let (orders, mailbox) = mpsc::channel::<Option<(String, Duration)>>();
        thread::spawn(move || {
            let mut next = mailbox.recv();
            // An error is the end of the bench.
            while let Ok(order) = next {
                let Some((what, bound)) = order else {
                    next = mailbox.recv();
                    continue;
                };
                next = match mailbox.recv_timeout(bound) {
                    Ok(order) => Ok(order),
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        eprintln!("{what}: not done after {bound:?}, given up");
                        // No destructors: they would wait for what hangs.
                        std::process::abort();
                    }
                };
            }
        });
        Self { orders }
    }

    /// Aborts the process unless `what` ends within `bound`.
    pub fn allow(&self, what: String, bound: Duration) {
        self.orders.send(Some((what, bound))).unwrap();
    }

    pub fn rest(&self) {
        self.orders.send(None).unwrap();
    }
}
