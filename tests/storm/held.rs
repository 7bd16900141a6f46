//! The awaiting side of a job: what it sees goes into the record, once, whatever becomes of it.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use twolane::{JoinError, Task};

use crate::ledger::{Record, Seen};
use crate::surroundings::{Done, Item, Round};

pub(crate) struct Held {
    pub(crate) round: Arc<Round>,
    pub(crate) record: Arc<Record>,
    /// None once it has answered, or was let go.
    pub(crate) task: Option<Task<Item>>,
    pub(crate) done: Done,
}

impl Held {
    pub(crate) fn task(&mut self) -> &mut Task<Item> {
        self.task.as_mut().expect("only its end takes it")
    }

    pub(crate) async fn settle(mut self) {
        let outcome = self.task().await;
        self.answered(outcome);
    }

    /// The same on a thread that may wait.
    pub(crate) fn settle_here(mut self) {
        let task = self.task.take().expect("only its end takes it");
        self.answered(task.wait());
    }

    pub(crate) fn detach(mut self) {
        self.record.see(Seen::Detached);
        self.task.take().expect("only its end takes it").detach();
    }

    pub(crate) fn abort(&self) {
        self.aborter()();
    }

    /// For another thread or task.
    pub(crate) fn aborter(&self) -> impl FnOnce() + Send + use<> {
        let task = self.task.as_ref().expect("only its end takes it");
        let (abort, record) = (task.abort_handle(), self.record.clone());
        move || {
            record.note(|facts| facts.asked = true);
            abort.abort();
        }
    }

    pub(crate) fn answered(mut self, outcome: Result<Item, JoinError>) {
        self.task = None;
        let level = &self.round.ledger.levels[self.record.what.level];
        let counts = u64::from(!self.record.what.is_on_io);
        match outcome {
            Ok(item) => {
                level.outputs_seen.fetch_add(counts, SeqCst);
                self.record.see(Seen::Output);
                assert_eq!(item.value, self.record.number, "another one's output");
                assert!(!self.done.must_panic, "it ended though it panics");
            }
            Err(error) => {
                let is_panic = u64::from(error.is_panic());
                level.panics_seen.fetch_add(counts * is_panic, SeqCst);
                self.record.see(Seen::of(&error));
                let done = Done {
                    cancelled: self.record.facts().asked,
                    ..self.done
                };
                self.round.check(error, done);
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.record.see(Seen::Dropped);
            self.record.note(|facts| facts.asked = true);
            drop(task);
        }
    }
}
