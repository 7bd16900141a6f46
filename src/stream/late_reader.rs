//! [`LateReader`]: for how long a stream has waited for its reader.

use std::time::{Duration, Instant};

use twolane_core::{Handle, adapters};

/// Kept beside a window. Each look at it is later than what it knows, so it errs on the side of a
/// longer time.
#[derive(Default)]
pub(crate) struct LateReader {
    /// Since when the stream waits for the reader, and what that had taken then.
    pub(crate) waits: Option<(Instant, usize)>,
    /// When the next look comes by itself.
    looks: Option<Instant>,
}

impl LateReader {
    /// Call while the window is full. Returns whether the reader has taken nothing for `limit`.
    ///
    /// `taken` differs from before if it has taken something; `None`: the stream waits for others.
    /// The lane calls `look` when the time is over, which has this called again: one such call is
    /// under way at most.
    pub(crate) fn is_late(
        &mut self,
        lane: &Handle,
        limit: Duration,
        taken: Option<usize>,
        look: impl FnOnce() + Send + 'static,
    ) -> bool {
        let now = Instant::now();
        let before = self.waits.filter(|(_, before)| Some(*before) == taken);
        let since = before.map_or(now, |(since, _)| since);
        self.waits = taken.map(|taken| (since, taken));
        let is_late = before.is_some() && now - since >= limit;
        if !is_late && self.looks.is_none_or(|looks| looks <= now) {
            // `None`: such a limit never ends.
            self.looks = since.checked_add(limit);
            if let Some(at) = self.looks {
                adapters::call_at(lane, at, look);
            }
        }
        is_late
    }
}
