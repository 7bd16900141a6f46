//! The control thread: one thread per lane for operations that must not block their
//! caller.
//!
//! It waits on its channel until a message or a deadline comes. It does this:
//!
//! - **Shutdown.** The thread that closes the lane may be an I/O worker, a worker of
//!   the lane itself, or a thread that runs a destructor. None of them may block. So
//!   that thread only sets the lane's `closed` flag and sends [`Message::Shutdown`].
//!   The control thread does the rest, in this order:
//!   1. It closes the semaphores of the queue limits, so that every `Reserve` resolves.
//!   2. It closes every queued and suspended job, with `Lane::reason_for_jobs`, which
//!      resolves their tasks. So no awaiter hangs, even if every worker is stuck in a
//!      job. (A worker that pops a job first closes it itself.) It does so in batches, and
//!      looks for messages and at its deadlines in between.
//!   3. It stops the watch of the I/O lane, and shuts the workers down. A future of
//!      `spawn_io` that is under way goes on: it is a task of the I/O lane.
//!   4. Meanwhile, after each batch, it has the *reaper* drop what these jobs had captured:
//!      a thread of its own, since a destructor may block. One reaper, started for the first
//!      such job, serves the lane to its end. It counts as a thread of the lane, and as one
//!      that is left only while it has something to drop. Once all other threads have ended,
//!      the control thread drops its channel, and it ends.
//!   5. It waits until the last lane thread has ended, replies to those who wait for that,
//!      and ends.
//! - **Deadlines** of `shutdown_timeout`. The control thread measures the time itself.
//!   So a deadline needs no Tokio timer, holds on any runtime, and holds while Tokio's
//!   clock is paused.
//! - **Threads.** It has the launcher start those of a priority (`launcher.rs`).
//! - **Retries.** A drain job that its worker could not use is broadcast again after a
//!   pause; see `pool/mod.rs`.
//!
//! No user destructor runs on the control thread, with two exceptions: the reaper
//! thread could not be started, or all lane threads have ended.
//!
//! **Messages that arrive while the control thread ends.** A push that finds the lane
//! closed sends [`Message::CloseQueued`]. The control thread drops its receiver
//! *before* it closes the queue for the last time. So one of three things holds:
//!
//! - The control thread receives the message.
//! - The message is lost with the channel. Then the push came before the last close,
//!   which finds the job.
//! - The send fails. Then the thread that pushed closes the queue itself
//!   (`Level::reap_queued`).

use std::collections::btree_map::{BTreeMap, OccupiedEntry};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::launcher::{Launches, Reply, Start, Threads};
use super::{Levels, Submitter, close_all, discard, thread};
use crate::error::CloseReason;
use crate::panics;
use crate::priority::Priority;
use crate::remaining::Remaining;
use crate::sync::mpsc::{self, Receiver, Sender};
use crate::sync::{Ordering::SeqCst, fence, spawn};
use crate::task::Runnable;

const CALLED: &str = "what the control thread called";

pub(crate) enum Message {
    /// The lane was closed.
    Shutdown,
    /// A job was pushed after the lane was closed.
    CloseQueued,
    /// The reaper has dropped one batch of jobs.
    Reaped,
    /// A lane thread has ended.
    ThreadEnded,
    /// The threads of a priority are needed.
    Start(Priority, Threads, Reply),
    /// Their launcher has ended.
    Started(Priority, Threads, io::Result<()>),
    /// Do this then.
    At(Instant, Due),
}

pub(crate) enum Due {
    Call(Box<dyn FnOnce() + Send>),
    /// Reply with what has not ended; also before, when the last lane thread has ended. If the
    /// sender is dropped, that is nothing.
    Reply(oneshot::Sender<Remaining>),
}

/// How many jobs it closes at a time, or slots of a shard of the registry.
const BATCH: usize = 256;

struct Control {
    levels: Arc<Levels>,
    start: Start,
    launches: Launches,
    reaper: Option<Sender<Vec<Arc<dyn Runnable>>>>,
    /// Batches of jobs that the reaper has not dropped yet.
    unreaped: usize,
    /// Whether the queues may hold jobs to close.
    has_queued: bool,
    /// The slot of the registry from which on the suspended jobs are still to be closed.
    next_suspended: Option<usize>,
    /// By their time.
    due: BTreeMap<Instant, Vec<Due>>,
    /// With more than so many, those that no one waits for are removed.
    purge_at: usize,
}

/// Starts the control thread of a lane.
pub(crate) fn start(
    levels: Arc<Levels>,
    receiver: Receiver<Message>,
    start: Start,
) -> io::Result<()> {
    let name = format!("{}-control", levels.lane.settings.name);
    spawn(name, move || {
        as_lane_thread(&levels.clone(), thread::CONTROL, || {
            Control::new(levels, start).run(receiver)
        });
    })
    .map(drop)
}

/// Runs `f` on this thread as on a worker of the lane.
///
/// User code may run in `f`: a destructor, a waker. A socket, a timer or a
/// `tokio::spawn` there belongs to the I/O runtime, as on any lane thread. A blocking
/// wait for the lane (`Task::wait`, `Shutdown::wait`) panics there.
fn as_lane_thread(levels: &Arc<Levels>, index: usize, f: impl FnOnce()) {
    let _io = levels.lane.io.enter();
    let own = Submitter::new(levels.clone(), Priority::default());
    // It poses as a worker: blocking waits for the lane panic there.
    thread::join_level(own, Some(index));
    f();
    thread::leave_level();
}

/// Starts the thread that drops the jobs which are sent to it.
fn start_reaper(levels: &Arc<Levels>) -> io::Result<Sender<Vec<Arc<dyn Runnable>>>> {
    let (reaper, batches) = mpsc::channel();
    let name = format!("{}-reaper", levels.lane.settings.name);
    let levels = levels.clone();
    spawn(name, move || {
        // A destructor runs at the nice value of a `Normal` job.
        thread::join_lane(&levels.lane, Some(Priority::Normal));
        as_lane_thread(&levels, 0, || {
            for closed in batches {
                discard(closed);
                let _ = levels.lane.send_control(Message::Reaped);
            }
        });
    })?;
    Ok(reaper)
}

impl Control {
    fn new(levels: Arc<Levels>, start: Start) -> Self {
        Self {
            levels,
            start,
            launches: Launches::default(),
            reaper: None,
            unreaped: 0,
            has_queued: false,
            next_suspended: None,
            due: BTreeMap::new(),
            purge_at: 64,
        }
    }

    fn run(mut self, receiver: Receiver<Message>) {
        while !self.is_over() {
            if let Some(message) = self.next(&receiver) {
                // A waker or a subscriber may panic. The control thread must survive
                // that.
                panics::run_hook(CALLED, || self.handle(message));
            }
            panics::run_hook(CALLED, || self.close_some());
            self.run_due();
            // The reaper ends once it is all that is left.
            if self.levels.is_over_except(self.idle_reapers()) {
                self.reaper = None;
            }
        }
        // Replies that are still in the channel. The last `close_queued` below covers all other
        // messages; see the top of this file.
        let late: Vec<_> = receiver.try_iter().collect();
        drop(receiver);
        let mut closed = Vec::new();
        panics::run_hook(CALLED, || {
            // If `build` has failed, the message of the shutdown may be unread.
            self.levels.close_limits();
            closed = self.levels.close_queued(usize::MAX);
            self.levels.lane.report_lost();
        });
        let due = self.due.into_values().flatten();
        due.for_each(|it| panics::drop_quietly(CALLED, it));
        late.into_iter()
            .for_each(|it| panics::drop_quietly(CALLED, it));
        discard(closed);
    }

    fn is_over(&self) -> bool {
        // A reaper that has just been started is not counted yet.
        self.unreaped == 0 && !self.has_jobs_to_close() && self.levels.is_over_except(0)
    }

    fn has_jobs_to_close(&self) -> bool {
        self.has_queued || self.next_suspended.is_some()
    }

    /// How many threads only wait for jobs to drop.
    fn idle_reapers(&self) -> usize {
        usize::from(self.reaper.is_some() && self.unreaped == 0)
    }

    /// Has the reaper drop what these jobs had captured, and logs the lost ones.
    fn reap(&mut self, closed: Vec<Arc<dyn Runnable>>) {
        if self.reaper.is_none() && !closed.is_empty() {
            self.reaper = start_reaper(&self.levels).ok();
        }
        match &self.reaper {
            _ if closed.is_empty() => {}
            Some(reaper) => {
                self.unreaped += 1;
                // The reaper receives as long as there is a sender.
                let _ = reaper.send(closed);
            }
            // No thread could be started: drop the jobs on this one.
            None => discard(closed),
        }
        if !self.has_jobs_to_close() {
            self.levels.lane.report_lost();
        }
    }

    /// The next message, if one comes before something is due. While there are jobs to close, it
    /// does not wait.
    fn next(&self, receiver: &Receiver<Message>) -> Option<Message> {
        if self.has_jobs_to_close() {
            return receiver.try_recv().ok();
        }
        let due = self.due.first_key_value().map(|(at, _)| *at);
        let wait = due.map(|at| at.saturating_duration_since(Instant::now()));
        // The lane holds a sender. Without a limit it waits for ever.
        receiver.recv_timeout(wait.unwrap_or(Duration::MAX)).ok()
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Shutdown => {
                (self.has_queued, self.next_suspended) = (true, Some(0));
                self.levels.close_limits();
            }
            Message::CloseQueued => self.has_queued = true,
            Message::Reaped => self.unreaped -= 1,
            // `run` reads the number of threads after each message.
            Message::ThreadEnded => {}
            Message::Start(priority, threads, reply) => {
                let own = Submitter::new(self.levels.clone(), priority);
                self.launches.request(own, threads, self.start, reply);
            }
            Message::Started(priority, threads, started) => {
                if started.is_err() && threads == Threads::Workers {
                    let level = self.levels.at(priority);
                    level.is_asked.store(false, SeqCst);
                    fence(SeqCst);
                    let closed = level.close_queued(level.queue.len(), CloseReason::NoThreads);
                    self.reap(closed);
                }
                self.launches.end(priority, threads, started);
            }
            Message::At(at, due) => self.add(at, due),
        }
    }

    fn add(&mut self, at: Instant, due: Due) {
        self.due.entry(at).or_default().push(due);
        if self.due.len() > self.purge_at {
            // Those who no longer wait take no memory.
            let is_over = |due: &Due| matches!(due, Due::Reply(reply) if reply.is_closed());
            self.due.retain(|_, at_once| {
                at_once.retain(|due| !is_over(due));
                !at_once.is_empty()
            });
            self.purge_at = 64 + 2 * self.due.len();
        }
    }

    /// Closes some of the jobs that are still to be closed: queued ones first, then suspended ones.
    fn close_some(&mut self) {
        let mut closed = Vec::new();
        if self.has_queued {
            closed = self.levels.close_queued(BATCH);
            self.has_queued = closed.len() == BATCH;
        } else if let Some(first) = self.next_suspended.take() {
            match self.levels.lane.registry.in_slots(first, BATCH) {
                Some(jobs) => {
                    self.next_suspended = Some(first + BATCH);
                    // A registered job may be queued as well, if its waker was called.
                    close_all(&jobs, self.levels.lane.reason_for_jobs());
                    closed = jobs;
                }
                None => self.levels.shutdown_workers(),
            }
        }
        self.reap(closed);
    }

    fn run_due(&mut self) {
        let (now, mut remaining) = (Instant::now(), None);
        let is_due = |first: &OccupiedEntry<'_, Instant, _>| *first.key() <= now;
        while let Some(first) = self.due.first_entry().filter(is_due) {
            for due in first.remove() {
                match due {
                    Due::Call(call) => panics::run_hook(CALLED, call),
                    Due::Reply(reply) => {
                        let idle = self.idle_reapers();
                        let left = *remaining.get_or_insert_with(|| self.levels.remaining(idle));
                        // An error: no one waits any more.
                        panics::run_hook(CALLED, || _ = reply.send(left));
                    }
                }
            }
        }
    }
}
