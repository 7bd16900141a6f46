//! The permits of a queue, by their documentation: those that wait are served first in, first
//! out, and while the first one waits for many, each permit that is free is kept for it.

use std::collections::VecDeque;

use crate::model::End;

/// How many permits of the queue a job or a submitter holds. None where there is no limit, and
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

struct Waiter {
    weight: usize,
    /// Of its weight.
    lacks: usize,
    answer: Answer,
}

pub(crate) struct Permits {
    limit: Option<usize>,
    free: usize,
    waiting: VecDeque<usize>,
    waiters: Vec<Waiter>,
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

    /// A weight of 0 counts 1.
    pub(crate) fn try_reserve(&mut self, weight: usize) -> Result<Permit, End> {
        let weight = weight.max(1);
        if self.is_closed {
            return Err(End::ShutDown);
        }
        match self.limit {
            None => Ok(Permit::default()),
            Some(limit) if weight > limit => Err(End::TooLarge),
            // Where some wait, none is free.
            Some(_) if weight > self.free => Err(End::QueueFull),
            Some(_) => {
                self.free -= weight;
                Ok(Permit { held: weight })
            }
        }
    }

    /// None: it waits, and its number is [`last`](Self::last).
    pub(crate) fn reserve(&mut self, weight: usize) -> Option<Result<Permit, End>> {
        let weight = weight.max(1);
        let entered = self.try_reserve(weight);
        if entered.as_ref().err() != Some(&End::QueueFull) {
            return Some(entered);
        }
        self.waiting.push_back(self.waiters.len());
        self.waiters.push(Waiter {
            weight,
            lacks: weight,
            answer: Answer::Waits,
        });
        let free = std::mem::take(&mut self.free);
        self.give(free);
        None
    }

    pub(crate) fn last(&self) -> usize {
        self.waiters.len() - 1
    }

    pub(crate) fn is_answered(&self, waiter: usize) -> bool {
        self.waiters[waiter].answer != Answer::Waits
    }

    /// None: it waits still. `has_permit`: what counts where that is left open.
    pub(crate) fn poll(&mut self, waiter: usize, has_permit: bool) -> Option<Result<Permit, End>> {
        let waiter = &mut self.waiters[waiter];
        let permit = Permit {
            held: waiter.weight,
        };
        let entered = match waiter.answer {
            Answer::Waits => return None,
            Answer::PermitOrClosed if !has_permit => Err(End::ShutDown),
            Answer::Permit | Answer::PermitOrClosed => Ok(permit),
            Answer::Closed => Err(End::ShutDown),
            Answer::Gone => unreachable!("it is polled no more"),
        };
        waiter.answer = Answer::Gone;
        Some(entered)
    }

    pub(crate) fn drop_waiter(&mut self, number: usize) {
        self.waiting.retain(|waits| *waits != number);
        let waiter = &mut self.waiters[number];
        if std::mem::replace(&mut waiter.answer, Answer::Gone) != Answer::Closed {
            let held = waiter.weight - waiter.lacks;
            self.give(held);
        }
    }

    pub(crate) fn give_back(&mut self, permit: Permit) {
        self.give(permit.held);
    }

    fn give(&mut self, mut permits: usize) {
        while let Some(first) = self.waiting.front().filter(|_| permits > 0) {
            let waiter = &mut self.waiters[*first];
            let given = permits.min(waiter.lacks);
            waiter.lacks -= given;
            permits -= given;
            if waiter.lacks == 0 {
                waiter.answer = Answer::Permit;
                self.waiting.pop_front();
            }
        }
        self.free += permits;
    }

    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.waiting.clear();
        for waiter in &mut self.waiters {
            waiter.answer = match waiter.answer {
                Answer::Waits => Answer::Closed,
                Answer::Permit => Answer::PermitOrClosed,
                other => other,
            };
        }
    }
}
