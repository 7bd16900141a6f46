//! What blocks my Tokio runtime?
//!
//! ```text
//! workers:            enter ─ poll ─ leave        enter ─ poll ───────── ...
//!                       │              │            │
//!                       v              v            v
//! records             count: odd     even         odd   odd   odd   odd      (`record.rs`)
//!                                                   ^     ^     ^     ^
//! the watch's thread:     a look every 40 ms ───────┴─────┴─────┴─────┘      (`run.rs`)
//!                         the kernel's times of the thread  -> own time, computes or blocks
//!                         its own time > threshold          -> a report      (`detect.rs`)
//! ```
//!
//! A thread of the runtime makes a few stores for each poll. The watch's own thread does the
//! rest. So it reports a stall while it lasts, by name. Names come from [`watch`](fn@watch),
//! [`enter`], `WatchLayer` (feature `tower`) and `SpanWatch` (feature `spans`).
//!
//! What is over before a look sees it, the thread itself has timed: two readings of the clock for each
//! poll (`ended.rs`).
//!
//! The watch also probes the runtime once a second, and more often while it is in use (`probe.rs`):
//! it writes to a socket, or spawns a task, which notes where it is polled, and how long it waited
//! ([`Watch::on_probe`]). Where a probe was polled is a worker of the runtime. A worker that waits in
//! a system call, other than to park, is stuck in code that the watch does not know (`thread.rs`);
//! so is one that computes, and does not turn to the driver of sockets and timers (`unnamed.rs`).
//!
//! # Examples
//!
//! ```
//! # #[tokio::main] async fn main() {
//! let runtime = tokio::runtime::Handle::current();
//! let watcher = stallwatch::Watch::new().start(&runtime).unwrap();
//!
//! let handler = async { 6 * 7 };
//! let answer = stallwatch::watch(handler).named("GET /answer").await;
//! assert_eq!((answer, watcher.stalls()), (42, 0));
//! # }
//! ```
//!
//! # Features
//!
//! | feature | default | gives |
//! |---|---|---|
//! | `tracing` | yes | stalls are logged |
//! | `tower` | no | `WatchLayer`: the requests of a service have names |
//! | `spans` | no | `SpanWatch`: spans of `tracing` are names; implies `tracing` |
//!
//! Tested on Linux. Elsewhere polls that are watched are reported, and not whether they compute
//! or block.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod detect;
mod ended;
mod future;
mod kernel;
mod lag;
#[cfg(feature = "tower")]
mod layer;
mod limiter;
mod log;
mod name;
mod pool;
mod probe;
mod record;
mod run;
mod scope;
#[cfg(feature = "spans")]
mod spans;
mod stall;
mod stolen;
mod sync;
mod thread;
mod unnamed;
mod watch;
mod watcher;
mod watching;

pub use future::{Watched, watch};
pub use lag::Lag;
#[cfg(feature = "tower")]
pub use layer::{WatchLayer, WatchService};
pub use name::{Name, escaped};
pub use pool::Pool;
pub use scope::{Entered, enter};
#[cfg(feature = "spans")]
pub use spans::SpanWatch;
pub use stall::{Cause, Stall};
pub use watch::Watch;
pub use watcher::Watcher;
pub use watching::is_watched;

/// The README's code, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
