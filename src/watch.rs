//! What blocks the I/O lane: for [`Builder::watch_io`](crate::Builder::watch_io).
//!
//! These are items of the crate `stallwatch`, which watches any Tokio runtime and knows no CPU
//! lane. A library that only gives its code names depends on that crate alone; the names count
//! where both have the same version of it.
//!
//! | here | there |
//! |---|---|
//! | feature `tower`: `WatchLayer` | feature `tower` |
//! | feature `tracing-layer`: `SpanWatch` | feature `spans` |
//!
//! `watch_io` starts the watch on a thread `NAME-watch` of the lane, and adds the lane as its
//! pool. The guide says [what it sees](crate::guide::p99).

#[cfg(feature = "tracing-layer")]
pub use stallwatch::SpanWatch;
pub use stallwatch::{Cause, Entered, Lag, Name, Stall, Watch, Watched, Watcher, enter, watch};
#[cfg(feature = "tower")]
pub use stallwatch::{WatchLayer, WatchService};
