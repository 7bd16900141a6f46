//! The control thread: one thread per lane that does what nobody else may wait for.
//!
//! It sleeps in its channel unless there is something to do:
//!
//! - **Shutdown.** Whoever shuts the lane down may be an I/O worker, a worker
//!   of the lane itself, or a destructor; none of them may block. They close
//!   the lane and leave the rest to the control thread: it resolves every queued and
//!   suspended job (so nothing hangs even if every lane thread is stuck in a
//!   job), lets go of the backend, has a reaper drop what they had captured
//!   (a destructor may block), waits until
//!   the last lane thread has ended, tells those who wait for that, and ends.
//! - **Deadlines** of `shutdown_timeout`: a clock of its own, so that they hold on
//!   any runtime, without a timer, and while Tokio's clock is paused.
//! - **Threads of a priority that is used for the first time**: it has another
//!   thread start them, which may wait for the user's start hooks.
//! - **What has to be tried again in a moment**: see `pool/rayon.rs`.
//!
//! No destructor of the user's runs here, with two exceptions: no thread is to be
//! had for it, or all the lane's threads have ended and those that waited for that
//! have been told.
//!
//! Its end, against late comers: a push that sees the lane closed sends
//! [`Message::CloseQueued`]. The control thread drops its channel *before* its last sweep, so
//! either the order arrives, or the sweep comes after the push, or the sender
//! is told that nobody is there and sweeps by itself.

use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{Lane, Level, thread};
use crate::os::starter;
use crate::panics;
use crate::priority::Priority;
use crate::task::Run;
use crate::trace;

pub(crate) enum Message {
    /// The lane was closed.
    Shutdown,
    /// A job was pushed after the lane was closed.
    CloseQueued,
    /// A job of this priority waits for threads.
    Start(Priority),
    /// And what came of it.
    Started(Priority, io::Result<()>),
    ThreadEnded,
    /// Call this after a while.
    CallAfter(Duration, Box<dyn FnOnce() + Send>),
    /// Tell me when the last thread has ended, or at the deadline, how many
    /// jobs are left running.
    AwaitShutdown {
        deadline: Option<Instant>,
        reply: oneshot::Sender<usize>,
    },
}

struct Control {
    lane: Arc<Lane>,
    /// The priorities whose threads are on their way.
    starting: [bool; Priority::ALL.len()],
    waiting: Vec<(Option<Instant>, oneshot::Sender<usize>)>,
    timers: Vec<(Instant, Box<dyn FnOnce() + Send>)>,
}

/// Starts the control thread of a lane.
pub(crate) fn start(lane: Arc<Lane>, receiver: Receiver<Message>) -> io::Result<()> {
    let name = format!("{}-control", lane.settings.name);
    starter::spawn(name, move || {
        as_lane_thread(&lane.clone(), || {
            let control = Control {
                lane,
                starting: Default::default(),
                waiting: Vec::new(),
                timers: Vec::new(),
            };
            control.run(receiver);
        });
    })
}

/// Code of the user's may run here: what it does carelessly belongs where it
/// would on any other thread of the lane, and it may not wait for the lane.
fn as_lane_thread(lane: &Arc<Lane>, f: impl FnOnce()) {
    let io = lane.io.handle().clone();
    let _io = io.enter();
    let level = Level::new(lane.clone(), Priority::default());
    thread::start(level, Some(0));
    f();
    drop(thread::end());
}

/// Starts the threads of a priority and tells `done` how it went, both on a
/// thread of their own: a start hook of the user's may block.
pub(crate) fn start_workers(level: &Level, done: impl FnOnce(io::Result<()>) + Send + 'static) {
    level.lane().thread_started();
    let name = format!("{}-starter", level.lane().settings.name);
    let level = level.clone();
    starter::run(name, move |born| {
        let start = || born.and_then(|()| level.start());
        let started =
            panics::catch(start).unwrap_or_else(|payload| Err(io::Error::other(payload.text())));
        done(started);
        level.lane().thread_ended();
    });
}

/// Runs the destructors of closed jobs on a thread of their own, which counts
/// as one of the lane's: one that blocks must not hold the control thread's clock.
fn reap(lane: &Arc<Lane>, closed: Vec<Arc<dyn Run>>) {
    if closed.is_empty() {
        return;
    }
    lane.thread_started();
    let name = format!("{}-reaper", lane.settings.name);
    let lane = lane.clone();
    starter::run(name, move |born| {
        if born.is_ok() {
            // As if it were a job.
            lane.set_thread_niceness(Priority::default());
            as_lane_thread(&lane, || Lane::discard(closed));
        } else {
            // No thread to be had: here, then.
            Lane::discard(closed);
        }
        lane.thread_ended();
    });
}

impl Control {
    fn run(mut self, receiver: Receiver<Message>) {
        while !self.lane.is_over() {
            if let Some(message) = self.next(&receiver) {
                // Whatever panics (a waker, a subscriber), the control thread stays.
                panics::run_hook("what the control thread called", || self.handle(message));
            }
            self.fire_timers();
        }
        // Orders that are still in the channel are not lost with it: see above.
        let late: Vec<_> = receiver.try_iter().collect();
        drop(receiver);
        for message in late {
            if let Message::AwaitShutdown { deadline, reply } = message {
                self.waiting.push((deadline, reply));
            }
        }
        let mut closed = Vec::new();
        panics::run_hook("what the control thread called", || {
            closed = self.lane.close_queued();
            self.lane.report_lost();
        });
        for (_, reply) in self.waiting {
            let _ = reply.send(0);
        }
        Lane::discard(closed);
    }

    fn next(&self, receiver: &Receiver<Message>) -> Option<Message> {
        let deadlines = self.waiting.iter().filter_map(|(deadline, _)| *deadline);
        let timers = self.timers.iter().map(|(at, _)| *at);
        let received = match deadlines.chain(timers).min() {
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
            // A push that finds the lane closed sends a `Sweep` as well. Threads that
            // have been let go would drop the jobs right here.
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
                        // An error: the lane is over, and all of it was seen to.
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
            // The loop looks at the count itself.
            Message::ThreadEnded => {}
            Message::CallAfter(pause, call) => self.timers.push((Instant::now() + pause, call)),
            Message::AwaitShutdown { deadline, reply } => self.waiting.push((deadline, reply)),
        }
    }

    fn level(&self, priority: Priority) -> Level {
        Level::new(self.lane.clone(), priority)
    }

    fn fire_timers(&mut self) {
        let now = Instant::now();
        let timers = mem::take(&mut self.timers).into_iter();
        let (due, later): (Vec<_>, Vec<_>) = timers.partition(|(at, _)| *at <= now);
        self.timers = later;
        for (_, call) in due {
            panics::run_hook("what the control thread called", call);
        }
        let is_due = |deadline: &Option<Instant>| deadline.is_some_and(|at| at <= now);
        let waiting = mem::take(&mut self.waiting).into_iter();
        let (due, later): (Vec<_>, Vec<_>) = waiting.partition(|(at, _)| is_due(at));
        self.waiting = later;
        for (_, reply) in due {
            let running = usize::try_from(self.lane.running()).unwrap_or(usize::MAX);
            let _ = reply.send(running);
        }
    }
}
