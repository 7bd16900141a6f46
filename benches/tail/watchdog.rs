//! Ends the process, with a message, if a slice doesn't end: a hang is a
//! finding too, but not one to wait for.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// Beyond the slice: what the client waits for a last answer, and the pools
/// for their threads.
const MARGIN: Duration = Duration::from_secs(60);

pub struct Watchdog {
    begun: Sender<String>,
}

impl Watchdog {
    /// Watches slices of this length.
    pub fn start(slice: Duration) -> Self {
        let (begun, next) = mpsc::channel::<String>();
        let watch = move || {
            let mut what = "the start".to_owned();
            loop {
                match next.recv_timeout(slice + MARGIN) {
                    Ok(begun) => what = begun,
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        eprintln!("no end of: {what}. Giving up.");
                        std::process::exit(1);
                    }
                }
            }
        };
        thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(watch)
            .unwrap();
        Self { begun }
    }

    pub fn begins(&self, what: impl Into<String>) {
        // It ends only when this does.
        let _ = self.begun.send(what.into());
    }
}
