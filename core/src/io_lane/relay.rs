//! [`Relay`]: wakes tasks of the I/O runtime from the inside, through its I/O driver.
//!
//! A wake from a foreign thread costs Tokio two wake-ups: it unparks a worker, and that worker,
//! before it polls the task, unparks a second one to search for more. A worker that returns from
//! the I/O driver with one task unparks none. So the relay is a task of the I/O runtime that
//! waits for an `eventfd`: a thread of the lane puts the awaiter's waker on a list, signals the
//! `eventfd`, and the task wakes what is on the list. Where cores are idle, this halves the round
//! trip of a job (`docs/cost.md`).
//!
//! **Only while all I/O workers are parked.** Then one of them waits in the driver and runs the
//! relay at once. If a worker runs, Tokio leaves the driver alone for as long as that worker
//! computes, and an ordinary wake is sooner. Workers count when they park and unpark, which
//! Tokio's metrics show. The last look may be too old by a moment: a worker that has just
//! returned from the driver, and blocks, delays the wake-up as it delays all I/O. A worker of the
//! rayon backend that has had nothing to do for a while calls
//! [`wake_leftovers`](Relay::wake_leftovers).
//!
//! **Only tasks of Tokio.** The awaiter may be any thread or executor. The relay compares the
//! waker with its own.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::{Arc, OnceLock};
use std::task::{Poll, RawWakerVTable, Waker};

use rustix::event::{EventfdFlags, eventfd};
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Handle, RuntimeFlavor, RuntimeMetrics};

use super::wake_list::{Pushed, WakeList};
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
    ///
    /// # Errors
    ///
    /// `Unsupported` if it has no I/O driver, or what the operating system says.
    pub(super) fn new(io: &Handle) -> io::Result<Option<Arc<Self>>> {
        let workers = io.metrics();
        if io.runtime_flavor() == RuntimeFlavor::CurrentThread || workers.num_workers() < 2 {
            return Ok(None);
        }
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let _entered = io.enter();
        // Tokio has no other way to ask for the driver.
        #[allow(
            deprecated,
            reason = "`register` is not in the oldest Tokio that we take, and an `OwnedFd` is sound"
        )]
        let event = panics::catch(|| AsyncFd::new(event))
            .map_err(|_| io::Error::from(io::ErrorKind::Unsupported))??;
        Ok(Some(Arc::new(Self {
            list: WakeList::new(),
            event,
            workers,
            of_tasks: OnceLock::new(),
        })))
    }

    /// The task. It ends when the runtime shuts down.
    pub(super) async fn run(self: Arc<Self>) {
        let _end = on_drop(|| {
            self.list.end();
            self.wake_leftovers();
        });
        let own = poll_fn(|cx| Poll::Ready(cx.waker().vtable())).await;
        let _ = self.of_tasks.set(own);
        while let Ok(mut ready) = self.event.readable().await {
            // Nothing reads the `eventfd`: each signal is an edge of its own.
            ready.clear_ready();
            self.list.was_signalled();
            self.wake_leftovers();
        }
    }

    /// Whether this is the way to wake that awaiter, as soon as all workers are parked.
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
        let is_signalled = match self.list.push(awaiter) {
            Pushed::Nothing => true,
            Pushed::Signal => rustix::io::write(self.event.get_ref(), &1_u64.to_ne_bytes()).is_ok(),
            Pushed::Take => false,
        };
        if !is_signalled {
            self.wake_leftovers();
        }
    }

    /// Wakes what is on the list, from any thread.
    pub(crate) fn wake_leftovers(&self) {
        while let Some(waker) = self.list.pop() {
            panics::wake(waker);
        }
    }
}
