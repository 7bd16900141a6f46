//! What some jobs have beside their work: a span, a place in a limited queue, a
//! deadline. In a box of their own, since most jobs of most programs have none,
//! and a queued job should be small.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

#[cfg(feature = "test-util")]
use super::clock_hold::ClockHold;
use crate::lane::{Lane, Place};
use crate::trace::Origin;

pub(crate) struct Extras(Option<Box<Inner>>);

#[derive(Default)]
struct Inner {
    origin: Option<Origin>,
    deadline: Option<Instant>,
    #[cfg(feature = "test-util")]
    clock: Option<ClockHold>,
    /// Given back by whoever ends the job. Locked for moments, by one thread as
    /// a rule: the job's own, while it runs.
    place: Mutex<Option<Place>>,
}

impl Extras {
    /// The span and subscriber of this moment alone.
    pub(crate) fn of_origin() -> Self {
        Self(Origin::capture().map(|origin| {
            Box::new(Inner {
                origin: Some(origin),
                ..Inner::default()
            })
        }))
    }

    /// And what else a job of `lane` has that is submitted now.
    pub(crate) fn of_job(lane: &Lane, place: Option<Place>, deadline: Option<Instant>) -> Self {
        let Self(mut inner) = Self::of_origin();
        if place.is_some() || deadline.is_some() {
            let inner = inner.get_or_insert_default();
            inner.place = Mutex::new(place);
            inner.deadline = deadline;
        }
        #[cfg(feature = "test-util")]
        if lane.settings.holds_paused_clock {
            inner.get_or_insert_default().clock = ClockHold::of(lane.io.handle());
        }
        #[cfg(not(feature = "test-util"))]
        let _ = lane;
        Self(inner)
    }

    /// Runs `f` where its submitter was, for `tracing`.
    pub(crate) fn in_scope<R>(&self, f: impl FnOnce() -> R) -> R {
        match self.0.as_deref() {
            Some(Inner {
                origin: Some(origin),
                ..
            }) => origin.in_scope(f),
            _ => f(),
        }
    }

    pub(crate) fn is_past_deadline(&self) -> bool {
        let deadline = self.0.as_ref().and_then(|inner| inner.deadline);
        deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    /// The place, for work that is submitted by the job.
    pub(crate) fn place(&self) -> Option<Place> {
        self.with_place(|place| place.clone())
    }

    /// The job has ended.
    pub(crate) fn give_place_back(&self) {
        drop(self.with_place(Option::take));
    }

    /// Before a job that rested is queued again.
    pub(crate) fn hold_clock(&self) {
        #[cfg(feature = "test-util")]
        self.with_clock(ClockHold::take);
    }

    /// The job rests, or has ended and its awaiting side was woken.
    pub(crate) fn let_clock_go(&self) {
        #[cfg(feature = "test-util")]
        self.with_clock(ClockHold::let_go);
    }

    pub(crate) fn holds_clock(&self) -> bool {
        #[cfg(feature = "test-util")]
        return self.0.as_ref().is_some_and(|inner| inner.clock.is_some());
        #[cfg(not(feature = "test-util"))]
        false
    }

    #[cfg(feature = "test-util")]
    fn with_clock(&self, f: impl FnOnce(&ClockHold)) {
        if let Some(clock) = self.0.as_ref().and_then(|inner| inner.clock.as_ref()) {
            f(clock);
        }
    }

    fn with_place(&self, f: impl FnOnce(&mut Option<Place>) -> Option<Place>) -> Option<Place> {
        let inner = self.0.as_ref()?;
        f(&mut inner.place.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
