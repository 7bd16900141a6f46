//! Without the feature `test-util` no job holds a clock.

use tokio::runtime::Handle;

#[derive(Default)]
pub(super) struct HeldClock(());

impl HeldClock {
    pub(super) fn of(_io: &Handle) -> Self {
        Self(())
    }

    pub(super) fn hold(&self) {}

    pub(super) fn take(&self) -> Option<ClockHold> {
        None
    }
}

pub(crate) enum ClockHold {}
