//! The optional parts of a job: a span, a permit of a limited queue, a deadline.
//!
//! They are in a box of their own: most jobs of most programs have none of them, and a
//! queued job should be small.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

use super::clock_hold::{ClockHold, HeldClock};
use crate::panics::run_hook;
use crate::trace::{self, Origin};

#[derive(Default)]
pub(crate) struct Extras(Option<Box<Inner>>);

#[derive(Default)]
struct Inner {
    origin: Option<Origin>,
    deadline: Option<Instant>,
    /// The thread that ends the job takes it. Only threads that run or discard the job
    /// lock the mutex, for a few instructions.
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    clock: HeldClock,
}

#[inline]
pub(crate) fn has_passed(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| deadline <= Instant::now())
}

impl Extras {
    /// For a job that this thread submits.
    #[inline]
    pub(crate) fn new(permit: Option<OwnedSemaphorePermit>, deadline: Option<Instant>) -> Self {
        let origin = Origin::capture();
        if origin.is_none() && permit.is_none() && deadline.is_none() {
            return Self(None);
        }
        Self(Some(Box::new(Inner {
            origin,
            deadline,
            permit: Mutex::new(permit),
            clock: HeldClock::default(),
        })))
    }

    /// Runs `f` in the span and with the subscriber of the submitter.
    #[inline]
    pub(crate) fn in_scope<R>(&self, f: impl FnOnce() -> R) -> R {
        let origin = self.0.as_ref().and_then(|inner| inner.origin.as_ref());
        trace::in_scope(origin, f)
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.0.as_ref().and_then(|inner| inner.deadline)
    }

    #[inline]
    pub(crate) fn is_past_deadline(&self) -> bool {
        has_passed(self.deadline())
    }

    /// Call after the job has ended and its captures were dropped.
    pub(crate) fn release_permit(&self) {
        let Some(inner) = &self.0 else {
            return;
        };
        let permit = inner.permit.lock();
        let permit = permit.unwrap_or_else(PoisonError::into_inner).take();
        if permit.is_some() {
            // This may wake the next `Reserve`, and a waker is user code.
            run_hook("the waker of a `Reserve`", || drop(permit));
        }
    }

    pub(crate) fn hold_clock_of(&mut self, io: &Handle) {
        self.0.get_or_insert_default().clock = HeldClock::of(io);
        self.hold_clock();
    }

    /// Call whenever the job is queued.
    #[inline]
    pub(crate) fn hold_clock(&self) {
        if let Some(inner) = &self.0 {
            inner.clock.hold();
        }
    }

    #[inline]
    pub(crate) fn take_clock(&self) -> Option<ClockHold> {
        self.0.as_ref().and_then(|inner| inner.clock.take())
    }
}
