//! Work that keeps its thread until the test lets it go.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use twolane_clients::clock::Work;

#[derive(Default)]
struct State {
    is_open: Mutex<bool>,
    opened: Condvar,
}

/// Opens when it is dropped, so that a test that fails ends.
pub(crate) struct Gate {
    state: Arc<State>,
    entered: Receiver<()>,
}

impl Gate {
    /// The gate, and the work that waits at it.
    pub(crate) fn closed() -> (Self, Work) {
        let state = Arc::<State>::default();
        let (enter, entered) = channel();
        let at_gate = state.clone();
        let work = Work::new(move |_| {
            let mut is_open = at_gate
                .is_open
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            // Without a reader once the test is over.
            let _ = enter.send(());
            while !*is_open {
                is_open = at_gate
                    .opened
                    .wait(is_open)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        });
        (Self { state, entered }, work)
    }

    /// Waits until so many threads are held.
    pub(crate) fn wait_for(&self, threads: usize) {
        for _ in 0..threads {
            self.entered.recv().unwrap();
        }
    }

    pub(crate) fn open(&self) {
        *self
            .state
            .is_open
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.state.opened.notify_all();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}
