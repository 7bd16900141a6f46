//! Without the feature `net`, or elsewhere than on Linux, there is no relay.

use std::sync::Arc;
use std::task::Waker;

use tokio::runtime::Handle;

use super::NoRelay;

pub(crate) enum Relay {}

impl Relay {
    #[expect(clippy::unnecessary_wraps, reason = "as the other one")]
    pub(super) fn new(_io: &Handle) -> Result<Option<Arc<Self>>, NoRelay> {
        Ok(None)
    }

    pub(super) async fn run(self: Arc<Self>) {
        match *self {}
    }

    pub(crate) fn wake(&self, _awaiter: Waker, _may_wait: impl FnMut() -> bool) {
        match *self {}
    }

    pub(crate) fn wake_leftovers(&self) {
        match *self {}
    }
}
