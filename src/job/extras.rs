//! What some jobs have beside their work: a span, a place in a limited queue, a
//! deadline. In a box of their own, since most jobs of most programs have none,
//! and a queued job should be small.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::lane::Place;
use crate::trace::Origin;

pub(crate) struct Extras(Option<Box<Inner>>);

struct Inner {
    origin: Option<Origin>,
    deadline: Option<Instant>,
    /// Given back by whoever ends the job. Locked for moments, by one thread as
    /// a rule: the job's own, while it runs.
    place: Mutex<Option<Place>>,
}

impl Extras {
    /// With the span and subscriber of this moment.
    pub(crate) fn capture(place: Option<Place>, deadline: Option<Instant>) -> Self {
        let origin = Origin::capture();
        if origin.is_none() && place.is_none() && deadline.is_none() {
            return Self(None);
        }
        Self(Some(Box::new(Inner {
            origin,
            deadline,
            place: Mutex::new(place),
        })))
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
        let deadline = self.0.as_ref().and_then(|some| some.deadline);
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

    fn with_place(&self, f: impl FnOnce(&mut Option<Place>) -> Option<Place>) -> Option<Place> {
        let some = self.0.as_ref()?;
        f(&mut some.place.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
