//! Where the code under test stays until a test lets it go on.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};

/// It opens when it is dropped.
pub struct Gate {
    reached: Receiver<()>,
    _open: Sender<()>,
}

impl Gate {
    /// Waits until the function is called, or called once more.
    pub fn is_reached(&self) {
        self.reached.recv().unwrap();
    }
}

/// A gate, and a function that returns once it is open.
pub fn gate() -> (Gate, impl Fn() + Clone + Send + Sync + 'static) {
    let (reach, reached) = mpsc::channel();
    let (_open, opens) = mpsc::channel::<()>();
    let opens = Arc::new(Mutex::new(opens));
    let stay = move || {
        // An error, here and below: the gate is open.
        let _ = reach.send(());
        let _ = opens.lock().unwrap().recv();
    };
    (Gate { reached, _open }, stay)
}
