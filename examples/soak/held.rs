//! The awaiting side of a job, as its submitter has it: it writes down what that
//! sees, once, whatever becomes of it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::Poll;

use futures::poll;
use twolane::{AbortHandle, JoinError, Task};

use super::captures::Answer;
use super::ledger::{Ledger, Record, Seen};
use super::panics;

pub struct Held {
    ledger: Arc<Ledger>,
    id: u32,
    /// None once it has answered, or was let go.
    task: Option<Task<Answer>>,
}

impl Held {
    pub fn new(ledger: Arc<Ledger>, id: u32, task: Task<Answer>) -> Self {
        Self {
            ledger,
            id,
            task: Some(task),
        }
    }

    fn record(&self) -> &Record {
        self.ledger.record(self.id)
    }

    fn task(&self) -> &Task<Answer> {
        self.task.as_ref().expect("only its end takes it")
    }

    /// Awaits it, and what it hands out.
    pub async fn settle(self) {
        let mut next = Some(self);
        while let Some(mut held) = next {
            let task = held.task.as_mut().expect("only its end takes it");
            let result = task.await;
            next = held.answered(result);
        }
    }

    /// The same on a thread that may wait.
    pub fn settle_here(self) {
        let mut next = Some(self);
        while let Some(mut held) = next {
            let task = held.task.take().expect("only its end takes it");
            next = held.answered(task.wait());
        }
    }

    /// Leaves a waker, and lets it go.
    pub async fn poll_and_drop(mut self) {
        let task = self.task.as_mut().expect("only its end takes it");
        if let Poll::Ready(result) = poll!(Pin::new(task)) {
            drop(self.answered(result));
        }
    }

    pub fn detach(mut self) {
        self.see(Seen::Detached);
        if let Some(task) = self.task.take() {
            task.detach();
        }
    }

    pub fn abort(&self) {
        self.record().asked.store(true, SeqCst);
        self.task().abort();
    }

    /// For another thread or task.
    pub fn aborter(&self) -> Aborter {
        Aborter {
            ledger: self.ledger.clone(),
            id: self.id,
            handle: self.task().abort_handle(),
        }
    }

    fn answered(&mut self, result: Result<Answer, JoinError>) -> Option<Self> {
        self.task = None;
        self.ledger.watchdog.beat();
        let level = &self.ledger.levels[self.record().what().level];
        match result {
            Ok(mut answer) => {
                level.seen_outputs.fetch_add(1, SeqCst);
                self.see(Seen::Output);
                if answer.id != self.id {
                    let (ours, theirs) = (self.id, answer.id);
                    let failure = format!("job {ours} has the output of job {theirs}");
                    self.ledger.fail(failure);
                }
                answer.child.take()
            }
            Err(error) => {
                if error.is_panic() {
                    level.seen_panics.fetch_add(1, SeqCst);
                }
                self.see(self.meaning_of(error));
                None
            }
        }
    }

    fn meaning_of(&self, error: JoinError) -> Seen {
        let seen = match () {
            () if error.is_panic() => Seen::Panic,
            () if error.is_cancelled() => Seen::Cancelled,
            () if error.is_expired() => Seen::Expired,
            () if error.is_shutdown() => Seen::Shutdown,
            () if error.is_io_runtime_gone() => Seen::IoGone,
            () if error.is_queue_full() => Seen::QueueFull,
            () => Seen::Wrong,
        };
        if seen == Seen::Wrong {
            self.ledger.fail(format!("job {}: {error}", self.id));
        }
        // An explosive one would explode here; in the error it does not.
        if seen == Seen::Panic && !self.record().what().kind.is_explosive() {
            let payload = error.into_panic();
            if !panics::is_planned_for(&*payload, self.id) {
                let id = self.id;
                self.ledger
                    .fail(format!("job {id} has another one's panic"));
            }
        }
        seen
    }

    fn see(&self, seen: Seen) {
        if !self.record().see(seen) {
            let id = self.id;
            self.ledger
                .fail(format!("job {id} has ended twice, at last as {seen:?}"));
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.see(Seen::Dropped);
            self.record().asked.store(true, SeqCst);
            drop(task);
        }
    }
}

pub struct Aborter {
    ledger: Arc<Ledger>,
    id: u32,
    handle: AbortHandle,
}

impl Aborter {
    pub fn abort(self) {
        self.ledger.record(self.id).asked.store(true, SeqCst);
        self.handle.abort();
    }
}
