//! Keep CPU work from freezing your Tokio service.
//!
//! A Tokio runtime serves I/O well until somebody computes on it; then timers,
//! health checks and sockets wait. twolane gives a process two lanes: the **I/O
//! lane** is the Tokio runtime that you have; the **CPU lane** is a fixed set of
//! threads for what computes. CPU-heavy closures and futures go to the CPU lane,
//! and everything they do by way of I/O runs on the I/O lane, and comes back
//! whole.
//!
//! ```
//! use twolane::CpuRuntime;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let cpu = CpuRuntime::new()?; // the surrounding Tokio runtime is the I/O lane
//!     let bytes = vec![7_u8; 1 << 16];
//!     // A closure, on the CPU lane; par_iter inside uses the same threads.
//!     let sum = cpu.spawn_cpu(move || bytes.iter().map(|b| u64::from(*b)).sum::<u64>()).await?;
//!     // A future, polled on the CPU lane, whose I/O runs on the I/O lane.
//!     let rows = cpu.spawn(async {
//!         let page = twolane::spawn_io(async { "a,b,c" }).await?;
//!         Ok::<_, twolane::JoinError>(page.split(',').count())
//!     });
//!     assert_eq!((sum, rows.await??), (7 << 16, 3));
//!     cpu.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! You may know the parts of this as *DedicatedExecutor*, as *`spawn_blocking`
//! for CPU work*, or as *a separate runtime for CPU-bound tasks*.
//!
//! # When to use what
//!
//! | what you have | use |
//! |---|---|
//! | a closure that computes, from about 100 µs on | [`spawn_cpu`](Handle::spawn_cpu) |
//! | a future that computes between its `.await`s | [`spawn`](Handle::spawn) |
//! | a request made inside a job | [`spawn_io`], or [`send_io`](RequestBuilderExt::send_io) for reqwest |
//! | a client whose every request shall be on the I/O lane | [`IoLayer`] for tower services (hyper-util, tonic), [`IoConnector`] for object_store |
//! | a stream or an HTTP body read inside a job | [`stream_from_io`](Handle::stream_from_io), [`body_from_io`](Handle::body_from_io) |
//! | a stream that computes its items, read by I/O | [`stream_from_cpu`](Handle::stream_from_cpu) |
//! | a client, pool or connection to be made inside a job | [`in_io_context`], or [`spawn_io`] |
//! | futures that `tokio::spawn` CPU-heavy parts of themselves | [`Backend::Runtime`] |
//! | a small job that must not wait for a queue of large ones | [`with_priority`](Handle::with_priority)[`(Priority::High)`](Priority) |
//! | bulk work that may wait: compactions, re-indexing | `with_priority(Priority::Low)` |
//! | more load than the lane can serve | [`Builder::queue_limit`]: [`try_spawn_cpu`](Handle::try_spawn_cpu) sheds it, [`admit`](Handle::admit) holds it back |
//! | work that is of no use after a while | a timeout around its [`Task`], or [`Permit::with_deadline`] |
//! | many tasks | [what joins futures](Task#many-tasks) |
//! | a long loop in a future | [`yield_if_due`] |
//! | a good moment in a future to let others go first | [`yield_now`] |
//! | a long loop in a closure | [`spawn_cpu_with`](Handle::spawn_cpu_with), [`JobContext::checkpoint`] |
//! | a wait for any of it on a plain thread | [`Task::wait`] |
//! | what became of all the jobs | [`Handle::metrics`] |
//! | a test with Tokio's paused clock | `Builder::hold_paused_clock` (feature `test-util`) |
//!
//! Work of less than some 100 µs is best offloaded in slices of a millisecond, or
//! done where it is: [`Handle`] says what an offload costs. File I/O and blocking
//! drivers belong on [`tokio::task::spawn_blocking`], which has threads to spare;
//! the CPU lane has as many as there are cores.
//!
//! # What holds
//!
//! - A [`Task`] that is dropped cancels its job: queued, it never runs.
//! - A queue with a [limit](Builder::queue_limit) holds no more jobs from outside
//!   than that, whatever their callers do, so it bounds memory; it serves waiters in
//!   FIFO order; and no job waits for a permit that it holds itself.
//! - The [counters](Metrics) balance: what was submitted is there, or has ended in
//!   one way.
//! - Awaiting what is ready spends Tokio's [cooperative budget](tokio::task::coop), as
//!   Tokio's own types do: a loop over finished tasks, or over a buffered stream, lets
//!   other tasks have their turns.
//! - A panic reaches the awaiter, payload intact, and goes no further.
//! - A body or stream that is cut short is an error, never an end.
//! - A shutdown, in any form, from anywhere, hangs nothing and loses nothing in
//!   silence: a job that never runs is told to its task, or to the log if it was
//!   detached. The table is at [`CpuRuntime`].
//! - On Linux the I/O lane gets a core when it wants one, while all of them
//!   compute: the CPU lane's threads weigh less, by priority
//!   ([`Builder::nice`]). Under a CPU quota the lane leaves a part of it to the
//!   I/O lane ([`Builder::throttle_to_quota`]).
//! - A job never starts on the stack of a rayon worker that waits inside another.
//! - The submitter's `tracing` span and subscriber go with the job. Task-locals
//!   ([`tokio::task_local!`]) do not.
//!
//! # Features
//!
//! | feature | default | gives |
//! |---|---|---|
//! | `tracing` | yes | spans and subscribers carried into jobs; a log of what has no other way out |
//! | `http-body` | no | [`Handle::body_from_io`], [`Handle::response_from_io`]: for any [`http_body::Body`] and HTTP client |
//! | `reqwest` | no | [`RequestBuilderExt::send_io`], for reqwest 0.13; implies `http-body` |
//! | `tower` | no | [`IoLayer`], for any `Service<http::Request<_>>`; implies `http-body` |
//! | `object_store_0_14`, `object_store_0_13` | no | [`IoConnector`], for that version of object_store; implies `http-body` |
//! | `metrics` | no | histograms of queue wait and run time in [`Metrics`]; two to four readings of the clock for each job |
//! | `idle-class` | no | `Builder::idle_class_for_low`, on Linux |
//! | `test-util` | no | `Builder::hold_paused_clock`, for tests with Tokio's paused clock |
//!
//! Linux is where it is tested. For Windows and macOS it is compiled, not run:
//! there it should work, without weights and quotas.
//!
//! # Public dependencies
//!
//! Types and traits of `tokio`, `http`, `http-body`, `bytes` and
//! `futures-core` 0.3 are in this crate's interface, with `tower-service` and
//! `tower-layer` 0.3, reqwest 0.13 and object_store by feature. A new
//! incompatible release of one that others pin (DataFusion 55 pins object_store
//! 0.13) gets a feature of its own, with the version in its name, in a minor
//! release of this crate, over the same code; both can be on at once. The
//! feature of the older one goes in a breaking release, not before what pins it
//! has moved on. A feature without a version means one version until this
//! crate's next breaking release.

#![forbid(unsafe_code)]
// Without all features some of the links above lead nowhere.
#![cfg_attr(
    not(all(feature = "reqwest", feature = "tower", feature = "object_store_0_14")),
    allow(rustdoc::broken_intra_doc_links)
)]

#[macro_use]
mod opaque;

mod admission;
mod backend;
mod block_on;
mod bridge;
mod build_error;
mod error;
mod handle;
mod io;
mod io_lane;
mod lane;
mod metrics;
mod os;
mod panics;
mod pool;
mod priority;
mod runtime;
mod sync;
mod task;
mod trace;

pub use admission::{Admit, Permit, Rejected};
pub use backend::Backend;
#[cfg(feature = "http-body")]
pub use bridge::body::{BodyError, BridgedBody, DEFAULT_BODY_LIMIT};
pub use bridge::buffer::{BridgeError, Bridged};
pub use bridge::in_context::InIoContext;
pub use build_error::BuildError;
pub use error::JoinError;
pub use handle::{EnterGuard, Handle, NoCurrentHandle, in_io_context, spawn_cpu, spawn_io};
#[cfg(any(feature = "object_store_0_13", feature = "object_store_0_14"))]
pub use io::object_store::IoConnector;
#[cfg(feature = "reqwest")]
pub use io::reqwest::{RequestBuilderExt, SendIo, SendIoError};
#[cfg(feature = "tower")]
pub use io::tower::{IoBody, IoLayer, IoResponse, IoService};
pub use io_lane::IoLaneState;
#[cfg(feature = "metrics")]
pub use metrics::DurationHistogram;
pub use metrics::Metrics;
pub use os::sizing::default_threads;
pub use priority::Priority;
pub use runtime::{Builder, CpuRuntime, Shutdown};
pub use task::budget::{Yield, yield_if_due, yield_now};
pub use task::{AbortHandle, Cancelled, JobContext, Task};

/// The README's code, compiled.
#[cfg(all(doctest, feature = "reqwest"))]
#[doc = include_str!("../README.md")]
struct Readme;
