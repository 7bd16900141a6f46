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
//! - **Deadlines** of `shutdown_timeout`, and of jobs (`lane/deadlines.rs`): a clock
//!   of its own, so that they hold on any runtime, without a timer, and while
//!   Tokio's clock is paused.
//! - **Threads of a priority that is used for the first time**: it has another
//!   thread start them, which may wait for the user's start hooks.
//! - **Homeless tickets** of the rayon backend, see `backend/rayon.rs`.
//!
//! Its end, against late comers: a push that sees the lane closed sends
//! [`Order::Sweep`]. The warden drops its mailbox *before* its last sweep, so
//! either the order arrives, or the sweep comes after the push, or the sender
//! is told that nobody is there and sweeps by itself.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::context;
use crate::handle::Handle;
use crate::job::Run;
use crate::lane::{Lane, Level, Schedule};
use crate::os::starter;
use crate::panics;
use crate::priority::Priority;
use crate::trace;

pub(crate) enum Order {
    /// The lane was closed.
    Shutdown,
    /// A job was pushed after the lane was closed.
    Sweep,
    /// The first job of a priority waits for threads.
    Start(Priority),
    /// A ticket of the rayon backend was taken by a thread that may not use it.
    Rehome(Priority),
    ThreadEnded,
    /// There is a deadline before the next one.
    LookAtClock,
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
    homeless: [usize; Priority::ALL.len()],
    pause: Duration,
    rehome_at: Option<Instant>,
    last_rehomed: Option<Instant>,
    /// Of jobs, and of those who wait for a place.
    schedule: Schedule,
    next_deadline: Option<Instant>,
}

/// Starts the warden of a lane.
pub(crate) fn start(lane: Arc<Lane>, mailbox: Receiver<Order>) -> io::Result<()> {
    let name = format!("{}-warden", lane.settings.name);
    starter::spawn(name, move || {
        as_thread_of(&lane.clone(), || {
            let warden = Warden {
                lane,
                waiting: Vec::new(),
                homeless: Default::default(),
                pause: FIRST_PAUSE,
                rehome_at: None,
                last_rehomed: None,
                schedule: Schedule::new(),
                next_deadline: None,
            };
            warden.run(mailbox);
        });
    })
}

/// Code of the user's may run here: what it does carelessly belongs where it
/// would on any other thread of the lane, and it may not wait for the lane.
fn as_thread_of(lane: &Arc<Lane>, f: impl FnOnce()) {
    let io = lane.io.handle().clone();
    let _io = io.enter();
    let level = Level::new(lane.clone(), Priority::default());
    context::enter_worker(Handle::new(level), 0);
    f();
    drop(context::leave_worker());
}

/// Starts the threads of a priority and tells `done` how it went, both on a
/// thread of their own: a start hook of the user's may block. What waits for
/// threads that are not to be had is ended first.
pub(crate) fn open(level: &Level, done: impl FnOnce(io::Result<()>) + Send + 'static) {
    level.lane().thread_started();
    let name = format!("{}-opener", level.lane().settings.name);
    let level = level.clone();
    starter::run(name, move |born| {
        let start = || born.and_then(|()| level.start());
        let started =
            panics::catch(start).unwrap_or_else(|payload| Err(io::Error::other(payload.text())));
        // It may call wakers.
        panics::run_hook("what an opener called", || {
            if started.is_err() {
                discard_elsewhere(level.lane(), level.give_up());
            }
            done(started);
        });
        level.lane().thread_ended();
    });
}

/// Runs the destructors of closed jobs on a thread of their own, which counts
/// as one of the lane's: one that blocks must not hold the warden's clock.
fn discard_elsewhere(lane: &Arc<Lane>, closed: Vec<Arc<dyn Run>>) {
    lane.thread_started();
    let name = format!("{}-sweeper", lane.settings.name);
    let lane = lane.clone();
    starter::run(name, move |born| {
        if born.is_ok() {
            // As if it were a job.
            lane.weigh_thread(Priority::default());
            as_thread_of(&lane, || Lane::discard(closed));
        } else {
            // No thread to be had: here, then.
            Lane::discard(closed);
        }
        lane.thread_ended();
    });
}

impl Warden {
    fn run(mut self, mailbox: Receiver<Order>) {
        while !self.lane.is_over() {
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
        panics::run_hook("what the warden called", || self.lane.sweep_queues());
        for (_, reply) in self.waiting {
            let _ = reply.send(0);
        }
    }

    fn next(&self, mailbox: &Receiver<Order>) -> Option<Order> {
        let deadlines = self.waiting.iter().filter_map(|(deadline, _)| *deadline);
        let others = self.rehome_at.into_iter().chain(self.next_deadline);
        match deadlines.chain(others).min() {
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
                self.lane.close_gates();
                let mut closed = self.lane.close_queued();
                closed.extend(self.lane.close_suspended());
                self.lane.retire_threads();
                self.lane.report_lost();
                if !closed.is_empty() {
                    discard_elsewhere(&self.lane, closed);
                }
            }
            Order::Sweep => self.lane.sweep_queues(),
            Order::Start(priority) => {
                let level = Level::new(self.lane.clone(), priority);
                open(&level, move |started| {
                    if let Err(error) = started {
                        trace::error_no_threads(priority, &error);
                    }
                });
            }
            Order::Rehome(priority) => {
                let now = Instant::now();
                self.pause = match self.last_rehomed {
                    Some(before) if now - before < 4 * self.pause => {
                        (self.pause * 2).min(LONGEST_PAUSE)
                    }
                    _ => FIRST_PAUSE,
                };
                self.homeless[priority.index()] += 1;
                self.rehome_at = Some(now + self.pause);
            }
            // The loop looks at the count itself, and at the clock.
            Order::ThreadEnded | Order::LookAtClock => {}
            Order::Await { deadline, reply } => self.waiting.push((deadline, reply)),
        }
    }

    fn attend_to_clock(&mut self) {
        self.next_deadline = self.lane.end_what_is_due(&mut self.schedule);
        let now = Instant::now();
        if self.rehome_at.is_some_and(|at| at <= now) {
            self.rehome_at = None;
            self.last_rehomed = Some(now);
            for priority in Priority::ALL {
                let level = Level::new(self.lane.clone(), priority);
                for _ in 0..std::mem::take(&mut self.homeless[priority.index()]) {
                    if let Some(threads) = level.threads() {
                        threads.reissue_ticket(&level);
                    }
                }
            }
        }
        let (due, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(deadline, _)| deadline.is_some_and(|at| at <= now));
        self.waiting = waiting;
        for (_, reply) in due {
            let _ = reply.send(self.lane.busy_threads());
        }
    }
}
