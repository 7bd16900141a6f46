//! The warden: one thread per lane that does what nobody else may wait for.
//!
//! It sleeps in its mailbox unless there is something to do:
//!
//! - **Shutdown.** Whoever shuts the lane down may be an I/O worker, a worker
//!   of the lane itself, or a destructor; none of them may block. They close
//!   the lane and leave the rest to the warden: it resolves every queued and
//!   suspended job (so nothing hangs even if every lane thread is stuck in a
//!   job), lets go of the backend, has a sweeper drop what they had captured
//!   (a destructor may block), waits until
//!   the last lane thread has ended, tells those who wait for that, and ends.
//! - **Deadlines** of `shutdown_timeout`: a clock of its own, so that they hold
//!   on any runtime, without a timer, and while Tokio's clock is paused.
//! - **Homeless tickets** of the rayon backend, see `backend/rayon.rs`.
//!
//! Its end, against late comers: a push that sees the lane closed sends
//! [`Order::Sweep`]. The warden drops its mailbox *before* its last sweep, so
//! either the order arrives, or the sweep comes after the push, or the sender
//! is told that nobody is there and sweeps by itself.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::context;
use crate::handle::Handle;
use crate::job::Run;
use crate::lane::Lane;
use crate::panics;

pub(crate) enum Order {
    /// The lane was closed.
    Shutdown,
    /// A job was pushed after the lane was closed.
    Sweep,
    /// A ticket of the rayon backend was taken by a thread that may not use it.
    Rehome,
    ThreadEnded,
    /// Tell me when the last thread has ended, or at the deadline, how many
    /// jobs are left running.
    Await {
        deadline: Option<Instant>,
        reply: oneshot::Sender<usize>,
    },
}

/// How long a homeless ticket waits: a moment at first, longer while the same
/// thread goes on taking it.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

struct Warden {
    lane: Arc<Lane>,
    waiting: Vec<(Option<Instant>, oneshot::Sender<usize>)>,
    homeless: usize,
    pause: Duration,
    rehome_at: Option<Instant>,
    last_rehomed: Option<Instant>,
}

/// Starts the warden of a lane.
pub(crate) fn start(lane: Arc<Lane>, mailbox: Receiver<Order>, name: &str) -> io::Result<()> {
    thread::Builder::new()
        .name(format!("{name}-warden"))
        .spawn(move || {
            // It runs destructors of the user's: what they do carelessly
            // belongs where it would on any other thread of the lane.
            let io = lane.io.handle().clone();
            let _io = io.enter();
            // As a worker of the lane, which may not wait for the lane.
            context::enter_worker(Handle::new(lane.clone()), 0);
            let warden = Warden {
                lane,
                waiting: Vec::new(),
                homeless: 0,
                pause: FIRST_PAUSE,
                rehome_at: None,
                last_rehomed: None,
            };
            warden.run(mailbox);
            drop(context::leave_worker());
        })
        .map(drop)
}

/// Runs the destructors of closed jobs on a thread of their own, which counts
/// as one of the lane's: one that blocks must not hold the warden's clock.
fn discard_elsewhere(lane: &Arc<Lane>, closed: Vec<Arc<dyn Run>>) {
    lane.thread_started();
    let name = thread::current()
        .name()
        .unwrap_or_default()
        .replace("warden", "sweeper");
    let jobs = Arc::new(Mutex::new(closed));
    let sweep = {
        let (lane, jobs) = (lane.clone(), jobs.clone());
        move || {
            let io = lane.io.handle().clone();
            let _io = io.enter();
            context::enter_worker(Handle::new(lane.clone()), 0);
            let closed = std::mem::take(&mut *jobs.lock().unwrap_or_else(PoisonError::into_inner));
            Lane::discard(closed);
            drop(context::leave_worker());
            lane.thread_ended();
        }
    };
    if thread::Builder::new().name(name).spawn(sweep).is_err() {
        // No thread to be had: here, then.
        let closed = std::mem::take(&mut *jobs.lock().unwrap_or_else(PoisonError::into_inner));
        Lane::discard(closed);
        lane.thread_ended();
    }
}

impl Warden {
    fn run(mut self, mailbox: Receiver<Order>) {
        while !(self.lane.is_closed() && self.retired() && self.lane.threads_alive() == 0) {
            if let Some(order) = self.next(&mailbox) {
                // Whatever panics (a waker, a subscriber), the warden stays.
                panics::run_hook("what the warden called", || self.obey(order));
            }
            self.attend_to_clock();
        }
        // Orders that are still in the mailbox are not lost with it: see above.
        let late: Vec<_> = mailbox.try_iter().collect();
        drop(mailbox);
        for order in late {
            panics::run_hook("what the warden called", || self.obey(order));
        }
        panics::run_hook("what the warden called", || self.lane.sweep_queue());
        for (_, reply) in self.waiting {
            let _ = reply.send(0);
        }
    }

    fn next(&self, mailbox: &Receiver<Order>) -> Option<Order> {
        let deadlines = self.waiting.iter().filter_map(|(deadline, _)| *deadline);
        match deadlines.chain(self.rehome_at).min() {
            None => Some(
                mailbox
                    .recv()
                    .expect("the warden holds its lane, which holds a sender"),
            ),
            Some(at) => match mailbox.recv_timeout(at.saturating_duration_since(Instant::now())) {
                Ok(order) => Some(order),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => {
                    unreachable!("the warden holds its lane, which holds a sender")
                }
            },
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Shutdown => {
                let mut closed = self.lane.close_queued();
                closed.extend(self.lane.close_suspended());
                if let Some(backend) = self.lane.backend() {
                    backend.retire();
                }
                if !closed.is_empty() {
                    discard_elsewhere(&self.lane, closed);
                }
            }
            Order::Sweep => self.lane.sweep_queue(),
            Order::Rehome => {
                let now = Instant::now();
                self.pause = match self.last_rehomed {
                    Some(before) if now - before < 4 * self.pause => {
                        (self.pause * 2).min(LONGEST_PAUSE)
                    }
                    _ => FIRST_PAUSE,
                };
                self.homeless += 1;
                self.rehome_at = Some(now + self.pause);
            }
            // The loop's condition looks at the count itself.
            Order::ThreadEnded => {}
            Order::Await { deadline, reply } => self.waiting.push((deadline, reply)),
        }
    }

    fn attend_to_clock(&mut self) {
        let now = Instant::now();
        if self.rehome_at.is_some_and(|at| at <= now) {
            self.rehome_at = None;
            self.last_rehomed = Some(now);
            for _ in 0..std::mem::take(&mut self.homeless) {
                if let Some(backend) = self.lane.backend() {
                    backend.reissue_ticket(&self.lane);
                }
            }
        }
        let (due, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(deadline, _)| deadline.is_some_and(|at| at <= now));
        self.waiting = waiting;
        for (_, reply) in due {
            let _ = reply.send(self.lane.running());
        }
    }

    fn retired(&self) -> bool {
        self.lane
            .backend()
            .is_none_or(|backend| backend.is_retired())
    }
}
