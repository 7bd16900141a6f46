//! [`Relay`]: wakes tasks of the I/O runtime from the inside, through its I/O driver.
//!
//! A wake-up from a foreign thread unparks two workers of Tokio: one, and before that one polls
//! the task, a second one that searches for more. A worker that returns from the I/O driver with
//! one task unparks none. So the relay is a task of the I/O runtime that waits for an `eventfd`: a
//! thread of the lane puts the awaiter's waker on a list (`wake_list.rs`) and writes to the
//! `eventfd`, and the task wakes what is on the list.
//!
//! **Only while all I/O workers are parked.** Then one of them is in the driver, or about to be. If
//! a worker runs, Tokio may leave the driver alone for as long as that worker computes, and an
//! ordinary wake-up is sooner. Tokio's metrics count when each worker parks and unparks.
//!
//! **What it gives up.** The second worker that an ordinary wake-up unparks takes over the driver.
//! Here no worker does: sockets and timers wait until the awaiter's poll ends, as they do after any
//! event of a socket. And the look at the workers may be too old by a moment: a worker that has
//! just returned from the driver, and blocks, delays the awaiter as it delays all I/O. (A worker of
//! the rayon backend that has had nothing to do for a while calls
//! [`wake_leftovers`](Relay::wake_leftovers).)
//!
//! **Only tasks of Tokio.** An awaiter may be any thread or executor, for which the I/O runtime
//! would be a detour. So the relay compares the waker with its own. Tasks of another Tokio runtime
//! look the same, and take the detour.

use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::{Arc, OnceLock};
use std::task::{Poll, RawWakerVTable, Waker};

use rustix::event::{EventfdFlags, eventfd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Handle, RuntimeFlavor, RuntimeMetrics};

use super::NoRelay;
use super::wake_list::WakeList;
use crate::guard::on_drop;
use crate::panics;

pub(crate) struct Relay {
    list: WakeList,
    event: AsyncFd<OwnedFd>,
    workers: RuntimeMetrics,
    /// Of the wakers of Tokio's tasks.
    of_tasks: OnceLock<&'static RawWakerVTable>,
}

impl Relay {
    /// `None` if the I/O runtime has one worker: there is no second one to spare.
    pub(super) fn new(io: &Handle) -> Result<Option<Arc<Self>>, NoRelay> {
        let workers = io.metrics();
        if io.runtime_flavor() == RuntimeFlavor::CurrentThread || workers.num_workers() < 2 {
            return Ok(None);
        }
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        let event = event.map_err(|error| NoRelay::Os(error.into()))?;
        let _entered = io.enter();
        // Tokio has no other way to ask for the driver.
        #[allow(
            deprecated,
            reason = "`register` is not in the oldest Tokio that we take, and an `OwnedFd` is sound"
        )]
        let event = panics::catch(|| AsyncFd::with_interest(event, Interest::READABLE))
            .map_err(|_| NoRelay::NoDriver)?
            .map_err(NoRelay::Os)?;
        Ok(Some(Arc::new(Self {
            list: WakeList::new(),
            event,
            workers,
            of_tasks: OnceLock::new(),
        })))
    }

    /// The task. It ends with the runtime, or with the lane.
    pub(super) async fn run(self: Arc<Self>) {
        let _end = on_drop(|| wake_all(self.list.end()));
        let own = poll_fn(|cx| Poll::Ready(cx.waker().vtable())).await;
        let _ = self.of_tasks.set(own);
        while let Ok(mut ready) = self.event.readable().await {
            // Nothing reads the `eventfd`: each write is an edge of its own.
            ready.clear_ready();
            self.wake_leftovers();
        }
    }

    /// Whether this is the way to wake that awaiter, if all workers are parked.
    fn is_for(&self, awaiter: &Waker) -> bool {
        let of_tasks = self.of_tasks.get();
        of_tasks.is_some_and(|of_tasks| ptr::eq(*of_tasks, awaiter.vtable()))
    }

    fn are_workers_parked(&self) -> bool {
        let mut workers = 0..self.workers.num_workers();
        workers.all(|worker| self.workers.worker_park_unpark_count(worker) % 2 == 1)
    }

    /// Wakes an awaiter. If I/O workers run, `may_wait` says whether to look once more.
    pub(crate) fn wake(&self, awaiter: Waker, mut may_wait: impl FnMut() -> bool) {
        let by_driver = self.is_for(&awaiter)
            && loop {
                if self.are_workers_parked() {
                    break true;
                }
                if !may_wait() {
                    break false;
                }
            };
        if !by_driver {
            return panics::wake(awaiter);
        }
        match self.list.push(awaiter) {
            Ok(()) => {
                if rustix::io::write(self.event.get_ref(), &1_u64.to_ne_bytes()).is_err() {
                    self.wake_leftovers();
                }
            }
            Err(awaiter) => panics::wake(awaiter),
        }
    }

    /// Wakes what is on the list.
    pub(crate) fn wake_leftovers(&self) {
        wake_all(self.list.take());
    }
}

fn wake_all(awaiters: Vec<Waker>) {
    awaiters.into_iter().for_each(panics::wake);
}
