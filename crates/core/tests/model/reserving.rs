//! The calls that take a permit, give one back, or wait for one.

use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use twolane_core::future::Reserve;
use twolane_core::{Handle, JoinError, adapters};

use crate::calls::{Deadline, Which};
use crate::check::Checked;
use crate::jobs::{Flag, end_of};
use crate::model::End;
use crate::permits;
use crate::run::{Run, poll_once};

pub(crate) struct Permit {
    pub(crate) real: twolane_core::Permit,
    pub(crate) model: permits::Permit,
    pub(crate) is_late: bool,
}

pub(crate) struct Waiter {
    /// In the model.
    pub(crate) number: usize,
    reserve: Reserve,
    /// What it wakes.
    pub(crate) flag: Arc<Flag>,
    is_late: bool,
}

/// A case is over before.
const NEVER: Duration = Duration::from_secs(3600);

impl Run {
    /// A handle, and whether its deadline has passed.
    pub(crate) fn handle_until(&self, until: Deadline) -> (Handle, bool) {
        let (now, never) = (Instant::now(), Instant::now() + NEVER);
        let handle = &self.handle;
        match until {
            Deadline::None => (handle.clone(), false),
            Deadline::Ahead => (handle.with_deadline(never), false),
            Deadline::Passed => (handle.with_deadline(now), true),
            Deadline::PassedAndAhead => (handle.with_deadline(now).with_deadline(never), true),
            Deadline::Taken => (
                adapters::without_deadline(&handle.with_deadline(now)),
                false,
            ),
        }
    }

    pub(crate) fn try_reserve(&mut self, until: Deadline) -> Checked {
        let (handle, is_late) = self.handle_until(until);
        let model = self.model.try_reserve();
        self.reserved(handle.try_reserve(), model, is_late)
    }

    pub(crate) fn reserve(&mut self, until: Deadline) -> Checked {
        let (handle, is_late) = self.handle_until(until);
        let mut reserve = handle.reserve();
        let flag = Arc::new(Flag::default());
        let polled = poll_once(&mut reserve, &flag);
        match (polled, self.model.reserve()) {
            (Poll::Ready(real), Some(model)) => self.reserved(real, model, is_late),
            (Poll::Pending, None) => {
                self.waiters.push(Waiter {
                    number: self.model.permits.last(),
                    reserve,
                    flag,
                    is_late,
                });
                Ok(())
            }
            (polled, model) => {
                prop_assert!(false, "{polled:?}, not {model:?}");
                Ok(())
            }
        }
    }

    pub(crate) fn poll_reserve(&mut self, which: Which) -> Checked {
        let Some(n) = self.index(which, self.waiters.len()) else {
            return Ok(());
        };
        let mut waiter = self.waiters.remove(n);
        waiter.flag = Arc::new(Flag::default());
        let polled = poll_once(&mut waiter.reserve, &waiter.flag);
        let has_permit = matches!(polled, Poll::Ready(Ok(_)));
        match (polled, self.model.poll_waiter(waiter.number, has_permit)) {
            (Poll::Ready(real), Some(model)) => self.reserved(real, model, waiter.is_late)?,
            (Poll::Pending, None) => self.waiters.push(waiter),
            (polled, model) => prop_assert!(false, "{polled:?}, not {model:?}"),
        }
        Ok(())
    }

    fn reserved(
        &mut self,
        real: Result<twolane_core::Permit, JoinError>,
        model: Result<permits::Permit, End>,
        is_late: bool,
    ) -> Checked {
        match (real, model) {
            (Ok(real), Ok(model)) => self.permits.push(Permit {
                real,
                model,
                is_late,
            }),
            (Err(error), Err(end)) => prop_assert_eq!(end_of(&error), end),
            (real, model) => prop_assert!(false, "{real:?}, not {model:?}"),
        }
        Ok(())
    }

    pub(crate) fn drop_reserve(&mut self, which: Which) {
        if let Some(n) = self.index(which, self.waiters.len()) {
            let waiter = self.waiters.remove(n);
            self.model.drop_waiter(waiter.number);
        }
    }

    pub(crate) fn set_deadline(&mut self, which: Which, has_passed: bool) {
        if let Some(permit) = self.take_permit(which) {
            let later = if has_passed { Duration::ZERO } else { NEVER };
            self.permits.push(Permit {
                real: permit.real.with_deadline(Instant::now() + later),
                is_late: permit.is_late || has_passed,
                ..permit
            });
        }
    }
}
