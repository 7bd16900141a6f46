//! The launcher: starts the threads of a priority when they are needed.
//!
//! `build` asks for those of `Normal`. A priority that nobody uses has no threads: the first job that
//! is queued there asks for them, and so does a call that needs them at once (`install`,
//! `tokio_handle`), which waits. The control thread gets the request, since it has the CPU mask and the
//! signal mask of the thread that built the lane. It spawns the launcher, a thread that ends when the
//! others are ready: to start them takes time, and user code runs meanwhile (`on_thread_start`).
//!
//! **Obligations.** [liveness] A job that is queued where there are no threads begins, or ends with an
//! error: who pushes it looks for the workers after the push, and the first who finds none asks. If the
//! system gives no thread, the launcher first lets the next job ask again, and closes the queued ones
//! after that. So a job that comes beside it is closed, or asks. [safety] A level gets one set of
//! workers: its launchers take turns. [safety] The lane does not end before its launchers: each counts
//! as one of its threads. One that is late finds the lane closed, and shuts down what it has started
//! (`Level::start`).

use std::io;
use std::sync::Arc;

use super::control::Message;
use super::{Level, Levels, Submitter, Workers};
use crate::error::CloseReason;
use crate::panics;
use crate::priority::Priority;
use crate::sync::mpsc::{self, Sender};
use crate::sync::{Ordering::SeqCst, fence, spawn};

/// Starts the workers of the submitter's priority, and waits until they are ready.
pub(crate) type Start = fn(&Submitter) -> io::Result<Arc<dyn Workers>>;

/// Whoever waits for them.
pub(crate) type Reply = Sender<io::Result<()>>;

impl Level {
    /// The workers are needed, and no one waits for them.
    #[cold]
    pub(super) fn ask_for_workers(&self) {
        if !self.is_asked.swap(true, SeqCst) {
            let (reply, _) = mpsc::channel();
            // An error means that the control thread has ended, and the lane is closed.
            let _ = self.lane.send_control(Message::Start(self.priority, reply));
        }
    }

    /// Starts the workers, and waits for them. Not on a thread that one of them may wait for.
    pub(crate) fn start_and_wait(&self) -> io::Result<()> {
        let (reply, started) = mpsc::channel();
        let _ = self.lane.send_control(Message::Start(self.priority, reply));
        let gone = |_| Err(io::Error::other("the lane was closed meanwhile"));
        started.recv().unwrap_or_else(gone)
    }

    fn start_once(self: &Arc<Self>, start: Start, own: &Submitter) -> io::Result<()> {
        let _turn = self.launching.lock();
        if self.workers().is_some() {
            return Ok(());
        }
        let started = panics::catch(|| start(own));
        let started = started.unwrap_or_else(|payload| Err(io::Error::other(payload.text())));
        let started = started.map(|workers| self.start(workers));
        started.inspect_err(|_| self.refuse_workers())
    }

    /// The system gave no thread.
    fn refuse_workers(&self) {
        self.is_asked.store(false, SeqCst);
        fence(SeqCst);
        self.reap_queued(CloseReason::NoThreads);
    }
}

/// The control thread calls it.
pub(super) fn launch(levels: &Arc<Levels>, priority: Priority, start: Start, reply: Reply) {
    let lane = &levels.lane;
    if lane.is_closed() {
        return;
    }
    lane.alive.fetch_add(1, SeqCst);
    let own = Submitter::new(levels.clone(), priority);
    let tell = reply.clone();
    let main = move || {
        let started = own.level().start_once(start, &own);
        // An error: no one waits.
        let _ = reply.send(started);
        own.levels.lane.thread_ended();
    };
    if let Err(refused) = spawn(format!("{}-launcher", lane.settings.name), main) {
        levels.at(priority).refuse_workers();
        let _ = tell.send(Err(refused));
        lane.thread_ended();
    }
}
