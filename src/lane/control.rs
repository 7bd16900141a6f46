//! The control thread: one thread per lane for operations that must not block their
//! caller.
//!
//! It waits on its channel until a message or a deadline comes. It does this:
//!
//! - **Shutdown.** The thread that closes the lane may be an I/O worker, a worker of
//!   the lane itself, or a thread that runs a destructor. None of them may block. So
//!   that thread only sets the lane's `closed` flag and sends [`Message::Shutdown`].
//!   The control thread does the rest, in this order:
//!   1. It closes the semaphores of the queue limits, so that every `Admit` resolves.
//!   2. It closes every queued and suspended job with `CloseReason::ShutDown`, which
//!      resolves their tasks. So no awaiter hangs, even if every worker is stuck in a
//!      job. (A worker that pops a job first closes it itself.)
//!   3. It shuts the workers down.
//!   4. It starts a reaper thread that drops what the closed jobs had captured. A
//!      destructor may block.
//!   5. It waits until the last lane thread has ended, calls the callbacks that wait
//!      for that, and ends.
//! - **Deadlines** of `shutdown_timeout`. The control thread measures the time itself.
//!   So a deadline needs no Tokio timer, holds on any runtime, and holds while Tokio's
//!   clock is paused.
//! - **Threads of a priority that is used for the first time.** A launcher thread starts
//!   them, and waits for the user's start hooks.
//! - **Retries.** A drain job that its worker could not use is broadcast again after a
//!   pause; see `pool/rayon.rs`. (Where the lane has ended meanwhile, the call finds no
//!   pool and does nothing.)
//!
//! No user destructor runs on the control thread, with two exceptions: the reaper
//! thread could not be started, or all lane threads have ended and the callbacks that
//! wait for that have been called.
//!
//! **Messages that arrive while the control thread ends.** A push that finds the lane
//! closed sends [`Message::CloseQueued`]. The control thread drops its receiver
//! *before* it closes the queue for the last time. So one of three things holds:
//!
//! - The control thread receives the message.
//! - The message is lost with the channel. Then the push came before the last close,
//!   which finds the job.
//! - The send fails. Then the thread that pushed closes the queue itself
//!   (`Lane::reap_queued`).

use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use super::{Lane, Level, thread};
use crate::os::starter;
use crate::panics;
use crate::priority::Priority;
use crate::remaining::Remaining;
use crate::task::Run;
use crate::trace;

const CALLED: &str = "what the control thread called";

pub(crate) enum Message {
    /// The lane was closed.
    Shutdown,
    /// A job was pushed after the lane was closed.
    CloseQueued,
    /// A job of this priority was queued before its threads had started.
    Start(Priority),
    /// The result of starting the threads of this priority.
    Started(Priority, io::Result<()>),
    /// A lane thread has ended.
    ThreadEnded,
    /// Call this when the last lane thread has ended, or at the deadline if that comes
    /// first. The argument is what has not ended.
    Call(Option<Instant>, Callback),
}

pub(crate) type Callback = Box<dyn FnOnce(Remaining) + Send>;

struct Control {
    lane: Arc<Lane>,
    /// The priorities whose threads are being started.
    starting: [bool; Priority::ALL.len()],
    calls: Vec<(Option<Instant>, Callback)>,
}

/// Starts the control thread of a lane.
pub(crate) fn start(lane: Arc<Lane>, receiver: Receiver<Message>) -> io::Result<()> {
    let name = format!("{}-control", lane.settings.name);
    starter::spawn(name, move || {
        as_lane_thread(&lane.clone(), || {
            let control = Control {
                lane,
                starting: Default::default(),
                calls: Vec::new(),
            };
            control.run(receiver);
        });
    })
}

/// Runs `f` on this thread as on a worker of the lane.
///
/// User code may run in `f`: a destructor, a waker. A socket, a timer or a
/// `tokio::spawn` there belongs to the I/O runtime, as on any lane thread. A blocking
/// wait for the lane (`Task::wait`, `Shutdown::wait`) panics there.
fn as_lane_thread(lane: &Arc<Lane>, f: impl FnOnce()) {
    let io = lane.io.handle().clone();
    let _io = io.enter();
    let level = Level::new(lane.clone(), Priority::default());
    thread::join_level(level, Some(0));
    f();
    drop(thread::leave_level());
}

/// Starts the threads of a priority, and calls `done` with the result.
///
/// Both happen on a thread of their own, since a start hook of the user may block. If
/// that thread cannot be started, `done` gets the error on the calling thread.
pub(crate) fn start_workers(level: &Level, done: impl FnOnce(io::Result<()>) + Send + 'static) {
    level.lane().thread_started();
    let name = format!("{}-launcher", level.lane().settings.name);
    let level = level.clone();
    starter::run(name, move |born| {
        let start = || born.and_then(|()| level.start());
        let started =
            panics::catch(start).unwrap_or_else(|payload| Err(io::Error::other(payload.text())));
        done(started);
        level.lane().thread_ended();
    });
}

/// Runs the destructors of closed jobs on a thread of its own.
///
/// A destructor may block, and the control thread has deadlines to keep. The new thread
/// counts as a lane thread, so a shutdown waits for it.
fn reap(lane: &Arc<Lane>, closed: Vec<Arc<dyn Run>>) {
    if closed.is_empty() {
        return;
    }
    lane.thread_started();
    let name = format!("{}-reaper", lane.settings.name);
    let lane = lane.clone();
    starter::run(name, move |born| {
        if born.is_ok() {
            // A destructor runs at the nice value of a `Normal` job.
            lane.set_thread_niceness(Priority::default());
            as_lane_thread(&lane, || Lane::discard(closed));
        } else {
            // No reaper thread could be started: drop the jobs on this thread.
            Lane::discard(closed);
        }
        lane.thread_ended();
    });
}

impl Control {
    fn run(mut self, receiver: Receiver<Message>) {
        while !self.lane.is_over() {
            if let Some(message) = self.next(&receiver) {
                // A waker or a subscriber may panic. The control thread must survive
                // that.
                panics::run_hook(CALLED, || self.handle(message));
            }
            self.run_due_callbacks();
        }
        // Keep the callbacks that are still in the channel. The last `close_queued`
        // below covers all other messages; see the top of this file.
        let late: Vec<_> = receiver.try_iter().collect();
        drop(receiver);
        for message in late {
            if let Message::Call(at, call) = message {
                self.calls.push((at, call));
            }
        }
        let mut closed = Vec::new();
        panics::run_hook(CALLED, || {
            closed = self.lane.close_queued();
            self.lane.report_lost();
        });
        for (_, call) in self.calls {
            panics::run_hook(CALLED, || call(Remaining::default()));
        }
        Lane::discard(closed);
    }

    fn next(&self, receiver: &Receiver<Message>) -> Option<Message> {
        let received = match self.calls.iter().filter_map(|(at, _)| *at).min() {
            None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => receiver.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        match received {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                unreachable!("the control thread holds its lane, which holds a sender")
            }
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Shutdown => {
                self.lane.close_limits();
                let mut closed = self.lane.close_queued();
                closed.extend(self.lane.close_registered());
                self.lane.shutdown_workers();
                reap(&self.lane, closed);
                self.lane.report_lost();
            }
            Message::CloseQueued => {
                let closed = self.lane.close_queued();
                reap(&self.lane, closed);
                self.lane.report_lost();
            }
            // The job is closed all the same: see `lane/mod.rs`. Workers that were shut
            // down would drop the job, and so run its destructors, on this thread.
            Message::Start(_) if self.lane.is_closed() => {}
            Message::Start(priority) => {
                let level = self.level(priority);
                if let Some(workers) = level.workers() {
                    workers.notify_all(&level);
                }
                let is_there = level.workers().is_some() || !level.has_queued();
                if !is_there && !mem::replace(&mut self.starting[priority.index()], true) {
                    let lane = self.lane.clone();
                    start_workers(&level, move |started| {
                        // An error means that the control thread has ended. It has
                        // closed all jobs.
                        let _ = lane.send_control(Message::Started(priority, started));
                    });
                }
            }
            Message::Started(priority, started) => {
                self.starting[priority.index()] = false;
                if let Err(error) = started {
                    trace::error_no_threads(priority, &error);
                    reap(&self.lane, self.level(priority).close_unserved());
                }
            }
            // `run` reads the number of threads after each message.
            Message::ThreadEnded => {}
            Message::Call(at, call) => self.calls.push((at, call)),
        }
    }

    fn level(&self, priority: Priority) -> Level {
        Level::new(self.lane.clone(), priority)
    }

    fn run_due_callbacks(&mut self) {
        let now = Instant::now();
        let is_due = |at: &Option<Instant>| at.is_some_and(|at| at <= now);
        let calls = mem::take(&mut self.calls).into_iter();
        let (due, later): (Vec<_>, Vec<_>) = calls.partition(|(at, _)| is_due(at));
        self.calls = later;
        if due.is_empty() {
            return;
        }
        let remaining = self.lane.remaining();
        for (_, call) in due {
            panics::run_hook(CALLED, || call(remaining));
        }
    }
}
