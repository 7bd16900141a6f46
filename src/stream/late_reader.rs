//! [`LateReader`]: for how long a stream has waited for its reader.

use std::time::{Duration, Instant};

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
    /// `look_at` has this called again then: one such call is under way at most.
    pub(crate) fn is_late(
        &mut self,
        limit: Duration,
        taken: Option<usize>,
        look_at: impl FnOnce(Instant),
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
                look_at(at);
            }
        }
        is_late
    }
}
