//! What the watch logs, as events of `tracing`. Nothing without the feature.

use std::fmt;

#[cfg(feature = "tracing")]
use tracing::{Dispatch, dispatcher};

/// Returns `main` with the subscriber of the thread that calls this: its events go there. If none
/// was ever set by now: to that of the process, once it has one.
pub(crate) fn with_this_subscriber(main: impl FnOnce() + Send) -> impl FnOnce() + Send {
    #[cfg(feature = "tracing")]
    let own = dispatcher::has_been_set().then(|| dispatcher::get_default(Dispatch::clone));
    move || {
        #[cfg(feature = "tracing")]
        let _own = own.as_ref().map(dispatcher::set_default);
        main();
    }
}

pub(crate) fn warn_of_stall(_stall: &dyn fmt::Display, _suppressed: u64) {
    #[cfg(feature = "tracing")]
    {
        let suppressed = Some(_suppressed).filter(|suppressed| *suppressed > 0);
        tracing::warn!(target: "stallwatch", suppressed, "{_stall}");
    }
}
