//! What the consumer spends of Tokio's cooperative budget.
//!
//! Tokio's own channels spend one unit of 128 for each item. A task that takes items of
//! some nanoseconds would so yield each microsecond, and a yield costs as much. Here the
//! budget is spent by time, at 0.16 us a unit, so that a task yields after 20 us. It
//! never spends more than one unit for each item: a task that takes long over each one
//! yields as with a channel of Tokio's.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::task::coop::{self, RestoreOnPending};

/// So many items are paid for at once.
const ITEMS: u32 = 32;
const UNIT: Duration = Duration::from_nanos(160);

#[derive(Default)]
pub(super) struct Budget {
    /// Items that are paid for.
    paid: u32,
    since: Option<Instant>,
}

impl Budget {
    /// Ready if the task may take one more item. The unit that is returned, if one is due,
    /// goes to [`spend`](Self::spend), or back to the task if there was no item.
    #[inline]
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<RestoreOnPending>> {
        if self.paid > 0 {
            return Poll::Ready(None);
        }
        coop::poll_proceed(cx).map(Some)
    }

    /// The task has taken an item.
    #[inline]
    pub(super) fn spend(&mut self, unit: Option<RestoreOnPending>, cx: &mut Context<'_>) {
        if let Some(unit) = unit {
            unit.made_progress();
            self.pay(cx);
        }
        self.paid -= 1;
    }

    fn pay(&mut self, cx: &mut Context<'_>) {
        let now = Instant::now();
        let took = self.since.map_or(UNIT, |since| now - since);
        let units = (took.as_nanos() / UNIT.as_nanos()).clamp(1, ITEMS.into());
        for _ in 1..units {
            if let Poll::Ready(unit) = coop::poll_proceed(cx) {
                unit.made_progress();
            }
        }
        self.since = Some(now);
        self.paid = ITEMS;
    }
}
