//! The permits of a queue, by their documentation: those that wait are served first in, first
//! out.

use std::collections::VecDeque;

use crate::model::End;

/// How many permits of the queue a job or a submitter holds: one. None where there is no limit, and
/// none of what a job submits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Permit {
    pub(crate) held: usize,
}

/// One call of `reserve` whose answer has not been looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Waits,
    Permit,
    /// It had its permit before a shutdown: which of the two counts is left open.
    PermitOrClosed,
    Closed,
    Gone,
}

pub(crate) struct Permits {
    limit: Option<usize>,
    free: usize,
    waiting: VecDeque<usize>,
    /// The answer of each that has ever waited.
    waiters: Vec<Answer>,
    is_closed: bool,
}

impl Permits {
    pub(crate) fn new(limit: Option<usize>) -> Self {
        Self {
            limit,
            free: limit.unwrap_or(0),
            waiting: VecDeque::new(),
            waiters: Vec::new(),
            is_closed: false,
        }
    }

    /// If there is a limit, and the lane is open.
    pub(crate) fn free(&self) -> Option<usize> {
        (self.limit.is_some() && !self.is_closed).then_some(self.free)
    }

    pub(crate) fn try_reserve(&mut self) -> Result<Permit, End> {
        if self.is_closed {
            return Err(End::ShutDown);
        }
        match self.limit {
            None => Ok(Permit::default()),
            // Where some wait, none is free.
            Some(_) if self.free == 0 => Err(End::QueueFull),
            Some(_) => {
                self.free -= 1;
                Ok(Permit { held: 1 })
            }
        }
    }

    /// None: it waits, and its number is [`last`](Self::last).
    pub(crate) fn reserve(&mut self) -> Option<Result<Permit, End>> {
        let entered = self.try_reserve();
        if entered.as_ref().err() != Some(&End::QueueFull) {
            return Some(entered);
        }
        self.waiting.push_back(self.waiters.len());
        self.waiters.push(Answer::Waits);
        None
    }

    pub(crate) fn last(&self) -> usize {
        self.waiters.len() - 1
    }

    pub(crate) fn is_answered(&self, waiter: usize) -> bool {
        self.waiters[waiter] != Answer::Waits
    }

    /// None: it waits still. `has_permit`: what counts where that is left open.
    pub(crate) fn poll(&mut self, waiter: usize, has_permit: bool) -> Option<Result<Permit, End>> {
        let answer = &mut self.waiters[waiter];
        let entered = match *answer {
            Answer::Waits => return None,
            Answer::PermitOrClosed if !has_permit => Err(End::ShutDown),
            Answer::Permit | Answer::PermitOrClosed => Ok(Permit { held: 1 }),
            Answer::Closed => Err(End::ShutDown),
            Answer::Gone => unreachable!("it is polled no more"),
        };
        *answer = Answer::Gone;
        Some(entered)
    }

    pub(crate) fn drop_waiter(&mut self, number: usize) {
        self.waiting.retain(|waits| *waits != number);
        let answer = std::mem::replace(&mut self.waiters[number], Answer::Gone);
        if matches!(answer, Answer::Permit | Answer::PermitOrClosed) {
            self.give(1);
        }
    }

    pub(crate) fn give_back(&mut self, permit: Permit) {
        self.give(permit.held);
    }

    fn give(&mut self, mut permits: usize) {
        while permits > 0
            && let Some(first) = self.waiting.pop_front()
        {
            self.waiters[first] = Answer::Permit;
            permits -= 1;
        }
        self.free += permits;
    }

    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.waiting.clear();
        for answer in &mut self.waiters {
            *answer = match *answer {
                Answer::Waits => Answer::Closed,
                Answer::Permit => Answer::PermitOrClosed,
                other => other,
            };
        }
    }
}
