//! The launcher: starts the threads of a priority when they are needed.
//!
//! `build` asks for the workers of `Normal`. A priority without jobs has none: the first job that is
//! queued there asks for them, and so does `install`, which waits. A priority has a companion
//! (`companion.rs`) once a call waits for it. The control thread gets the request, since it has the CPU
//! mask and the signal mask of the thread that built the lane. It spawns the launcher, a thread that ends when the
//! others are ready: to start them takes time, and user code runs meanwhile (`on_thread_start`). A
//! request that comes while a launcher of the priority is under way has its answer when that ends.
//!
//! **Obligations.** [liveness] A job that is queued where there are no threads begins, or ends with an
//! error: who pushes it looks for the workers after the push, and the first who finds none asks. If the
//! system gives no thread, the control thread first lets the next job ask again, and closes the queued
//! ones after that. So a job that comes beside it is closed, or asks. [liveness] A start hook of the
//! lane does not wait for its own thread, and neither does the control thread for itself, on which
//! wakers run. [safety] A level gets one set of each: there is one launcher at a time. [safety] The lane
//! does not end before its launchers: each counts as one of its threads. One that is late finds the
//! lane closed, and shuts down what it has started (`Level::start`).

use std::io;
use std::sync::Arc;

use super::companion::Companion;
use super::control::Message;
use super::{Level, Submitter, Workers, thread};
use crate::panics;
use crate::priority::Priority;
use crate::sync::mpsc::{self, Sender};
use crate::sync::{Ordering::SeqCst, spawn};

/// Starts the workers of the submitter's priority, and waits until they are ready.
pub(crate) type Start = fn(&Submitter) -> io::Result<Arc<dyn Workers>>;

/// The caller that waits for them has the other end.
pub(crate) type Reply = Sender<io::Result<()>>;

/// Which threads of a priority.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Threads {
    Workers,
    Companion,
}

/// By priority and kind: who waits for the launcher that is under way.
#[derive(Default)]
pub(super) struct Launches([[Option<Vec<Reply>>; 2]; Priority::ALL.len()]);

impl Level {
    /// A job needs the workers. Its submitter does not wait for them.
    #[cold]
    pub(super) fn ask_for_workers(&self) {
        if !self.is_asked.swap(true, SeqCst) {
            let (reply, _) = mpsc::channel();
            // An error means that the control thread has ended, and the lane is closed.
            let _ = self.send_start(Threads::Workers, reply);
        }
    }

    /// Starts these threads, and waits for them. Not on a thread that one of them may wait for. The result
    /// is for who is the first to ask.
    pub(crate) fn start_and_wait(&self, threads: Threads) -> io::Result<()> {
        let (reply, started) = mpsc::channel();
        let _ = self.send_start(threads, reply);
        started
            .recv()
            .unwrap_or_else(|dropped| Err(io::Error::other(dropped)))
    }

    fn send_start(&self, threads: Threads, reply: Reply) -> Result<(), Message> {
        let start = Message::Start(self.priority, threads, reply);
        self.lane.send_control(start)
    }
}

impl Launches {
    /// A request, whose reply is dropped if the threads are there or the lane is closed.
    pub(super) fn request(&mut self, own: Submitter, threads: Threads, start: Start, reply: Reply) {
        let lane = own.levels.lane.clone();
        let under_way = &mut self.0[own.priority.index()][threads as usize];
        if let Some(waiting) = under_way {
            waiting.push(reply);
        } else if !own.level().has(threads) && !lane.is_closed() {
            *under_way = Some(vec![reply]);
            lane.alive.fetch_add(1, SeqCst);
            let (priority, name) = (own.priority, format!("{}-launcher", lane.settings.name));
            if let Err(refused) = spawn(name, move || launch(&own, threads, start)) {
                let _ = lane.send_control(Message::Started(priority, threads, Err(refused)));
                lane.thread_ended();
            }
        }
    }

    /// The launcher has ended. The first who waits is told how; the others look for the threads.
    pub(super) fn end(&mut self, priority: Priority, threads: Threads, started: io::Result<()>) {
        let waiting = self.0[priority.index()][threads as usize].take();
        let first = waiting.into_iter().flatten().next();
        let _ = first.map(|first| first.send(started));
    }
}

fn launch(own: &Submitter, threads: Threads, start: Start) {
    let level = own.level();
    // The user's code that it calls may not wait for it.
    thread::join_level(own.clone(), Some(thread::STARTING));
    let started = panics::catch(|| match threads {
        Threads::Workers => start(own).map(|workers| level.start(workers)),
        Threads::Companion => Companion::start(own).map(|companion| level.add(companion)),
    });
    let started = started.unwrap_or_else(|payload| Err(io::Error::other(payload.text())));
    let ended = Message::Started(own.priority, threads, started);
    let _ = level.lane.send_control(ended);
    thread::leave_level();
    level.lane.thread_ended();
}
