//! [`KeyQueue`]: the queued jobs of one key. Short ones pass the others as far as their share goes
//! (`pace/shares.rs`), and each kind is FIFO: as in the lane's own queue, within the key. But a future
//! that yields goes behind the others that are queued, and not behind those that come later.

use std::collections::VecDeque;

use super::super::Shares;

pub(super) struct KeyQueue<T> {
    short: VecDeque<T>,
    others: VecDeque<T>,
    shares: Shares,
}

/// An empty queue keeps room for so many jobs, and no more.
const KEPT: usize = 16;

impl<T> KeyQueue<T> {
    pub(super) fn new(shares: Shares) -> Self {
        Self {
            short: VecDeque::new(),
            others: VecDeque::new(),
            shares,
        }
    }

    pub(super) fn push(&mut self, job: T, is_short: bool) {
        let queue = if is_short {
            &mut self.short
        } else {
            &mut self.others
        };
        queue.push_back(job);
    }

    /// With the job comes whether it has the share of the short ones.
    pub(super) fn pop(&mut self) -> Option<(T, bool)> {
        if self.short.is_empty() {
            self.shares.no_short_waits();
        }
        let others_wait = !self.others.is_empty();
        let is_short = !self.short.is_empty() && self.shares.is_turn_of_short(others_wait);
        let queue = if is_short {
            &mut self.short
        } else {
            &mut self.others
        };
        let job = queue.pop_front()?;
        if queue.is_empty() && queue.capacity() > KEPT {
            *queue = VecDeque::new();
        }
        Some((job, is_short))
    }

    pub(super) fn shares(&self) -> &Shares {
        &self.shares
    }

    pub(super) fn len(&self) -> usize {
        self.short.len() + self.others.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_queue_keeps_room_for_some_jobs_and_no_more() {
        let mut queue = KeyQueue::new(Shares::new(1, None));
        for (jobs, is_kept) in [(KEPT, true), (KEPT + 1, false)] {
            (0..jobs).for_each(|job| queue.push(job, false));
            while queue.pop().is_some() {}
            assert_eq!(queue.others.capacity() >= KEPT, is_kept);
        }
    }
}
