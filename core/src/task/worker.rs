//! [`Worker`]: the thread that runs a job's step, as the step sees it.
//!
//! It lives on the stack of the loop that drains the queue, and is passed down to each job. So a
//! step finds its counters, the lane's flag and its call sites at hand, and looks nothing up.

use super::event::{Event, Page};
use crate::metrics::call_sites::Sites;
use crate::metrics::timings::Timings;
use crate::os::throttle::Throttle;
use crate::priority::Priority;
use crate::sync::{AtomicBool, AtomicUsize, Ordering::SeqCst};

pub(crate) struct Worker<'a> {
    pub(crate) priority: Priority,
    /// Whether the lane is closed.
    pub(crate) closed: &'a AtomicBool,
    pub(crate) page: &'a Page,
    /// Whether other threads count on the same page.
    pub(crate) shares_page: bool,
    /// Set if the lane keeps a CPU quota where there is one.
    pub(crate) throttle: Option<&'a Throttle>,
    pub(crate) sites: &'a Sites,
    /// `None` if they are not recorded.
    pub(crate) timings: Option<&'a Timings>,
    /// Counts this worker until its step has computed.
    pub(crate) counted_by: Option<&'a AtomicUsize>,
    /// The last step yielded to the other jobs of the lane.
    pub(crate) yielded: bool,
}

impl<'a> Worker<'a> {
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }

    #[inline]
    pub(super) fn count(&self, event: Event) {
        if self.shares_page {
            self.page.add(event);
        } else {
            self.page.add_alone(event);
        }
    }

    /// Call before a step: waits while the process is about to use up its CPU quota.
    #[inline]
    pub(super) fn throttle(&self, has_ended: impl Fn() -> bool) {
        let Some(throttle) = self.throttle else {
            return;
        };
        let is_over = || self.is_closed() || has_ended();
        if throttle.is_due() && !is_over() {
            throttle.pause(self.priority, &is_over);
        }
    }

    /// Call before a job is run: `count` counts this worker until the step has computed.
    pub(crate) fn enters(&mut self, count: &'a AtomicUsize) {
        count.fetch_add(1, SeqCst);
        self.counted_by = Some(count);
    }

    /// Call when the step has computed, before its awaiter is notified, and again when it is over:
    /// a closed job computes nothing.
    #[inline]
    pub(crate) fn leaves(&mut self) {
        if let Some(count) = self.counted_by.take() {
            count.fetch_sub(1, SeqCst);
        }
    }
}
