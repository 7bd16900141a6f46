//! The core of `twolane`: two lanes, one for I/O and one for CPU work, in one process.
//!
//! The *I/O lane* is the application's own Tokio runtime. The *CPU lane* has threads of its own,
//! rayon's or those of a second Tokio runtime, for closures and futures that compute. On Linux, nice
//! values let the I/O lane have a core whenever it wants one.
//!
//! Applications depend on `twolane`, which exports all of this crate, and adds streams that
//! compute, HTTP and database clients, exporters of metrics and a guide. Libraries and engines
//! that submit work to a lane depend on this crate: it changes less, and has no type in its
//! interface that is before 1.0, but of `futures-core`, `futures-task` and `stallwatch`.
//!
//! ```
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cpu = twolane_core::CpuRuntime::new()?;
//! let product = cpu.spawn_cpu(|| (1..=20_u64).product::<u64>()).await?;
//! assert_eq!(product, 2_432_902_008_176_640_000);
//! # Ok(()) }
//! ```
//!
//! # Where to find what
//!
//! | | |
//! |---|---|
//! | build, configure and shut down a lane | [`CpuRuntime`], [`Builder`] |
//! | submit to it, and to the I/O lane | [`Handle`], [`IoHandle`](io::IoHandle) |
//! | await, cancel, detach | [`Task`], [`AbortHandle`], [`JobContext`] |
//! | wait for a place in a queue with a limit | [`Handle::reserve`], [`Permit`] |
//! | a stream from one lane to the other | [`Handle::stream_from_io`], [`Bridged`](io::Bridged) |
//! | let others pass | [`yield_if_due`], [`yield_now`] |
//! | count | [`Metrics`](metrics::Metrics), [`CallSites`](metrics::CallSites) |
//!
//! In the examples below, `twolane::` may be read as `twolane_core::`; `twolane::watch` is the
//! crate `stallwatch`.
//!
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[macro_use]
mod opaque;

#[doc(hidden)]
pub mod adapters;
mod admission;
mod bridge;
mod build_error;
mod error;
mod guard;
mod handle;
mod io_lane;
mod key;
mod lane;
mod limits;
pub mod metrics;
mod niceness;
mod pace;
mod panics;
mod pool;
mod priority;
mod remaining;
mod runtime;
mod sync;
mod task;
mod trace;

pub use admission::Permit;
pub use bridge::in_cpu_context::in_cpu_context;
pub use build_error::BuildError;
pub use error::{JoinError, JoinErrorKind};
pub use handle::{EnterGuard, Handle, NoCurrentHandle, spawn_cpu, spawn_io};
pub use key::Key;
pub use niceness::Niceness;
pub use priority::Priority;
pub use remaining::Remaining;
pub use runtime::{Builder, CpuRuntime};
pub use task::yields::{is_yield_due, yield_if_due, yield_now};
pub use task::{AbortHandle, Cancelled, JobContext, Task};

/// The I/O lane's own handle, and streams from one lane to the other.
pub mod io {
    pub use crate::bridge::buffer::Bridged;
    pub use crate::bridge::error::BridgeError;
    pub use crate::bridge::writer::BridgeWriter;
    pub use crate::handle::IoHandle;
}

/// The futures that functions and methods of this crate return.
pub mod future {
    pub use crate::admission::Reserve;
    pub use crate::bridge::in_cpu_context::InCpuContext;
    pub use crate::runtime::Shutdown;
    pub use crate::task::yields::Yield;
}

/// The README's code, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
