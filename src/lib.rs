//! Keeps CPU-heavy work from freezing your Tokio service.
//!
//! A Tokio runtime serves I/O well until one of its tasks computes for long; then timers, health
//! checks and sockets wait. twolane gives a process two lanes. The **I/O lane** is the Tokio
//! runtime that you have. The **CPU lane** is a fixed set of threads for CPU-bound work, with
//! limits, priorities and cancellation. On Linux the I/O lane gets a core at once where the kernel
//! preempts, and within about a millisecond on a lazy kernel, which Linux 7 is by default
//! ([Linux](guide::linux)).
//!
//! ```
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let cpu = twolane::CpuRuntime::new()?; // the surrounding Tokio runtime is the I/O lane
//!     // A closure, on the CPU lane; `par_iter` inside uses the same threads.
//!     let sum = cpu.spawn_cpu(|| (1..=1_000_u64).sum::<u64>()).await?;
//!     assert_eq!(sum, 500_500);
//!     cpu.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! You may know the parts of this as *DedicatedExecutor*, as *`spawn_blocking`
//! for CPU work*, or as *a separate runtime for CPU-bound tasks*.
//!
//! # Two modes
//!
//! **Closure mode** suits most services. A handler does its I/O on the Tokio runtime, as ever, and
//! sends the CPU-bound part away:
//!
//! | what you have | use |
//! |---|---|
//! | a CPU lane, with a limit, in `main` | [`CpuRuntime::builder`], [`Builder::max_wait`], [`CpuRuntime::handle`] |
//! | a closure that computes for 100 µs or more | [`spawn_cpu`](Handle::spawn_cpu) |
//! | a closure with a long loop | [`spawn_cpu_with`](Handle::spawn_cpu_with), [`JobContext::checkpoint`] |
//! | more load than the lane can serve | [`JoinError::is_unavailable`]: answer 503; or wait with [`reserve`](Handle::reserve) |
//! | a small job behind a queue of large ones; bulk work | [`with_priority`](Handle::with_priority) |
//! | customers that share a service | [`Handle::with_key`]: a share for each |
//! | work that is of no use after a while | [`Task::within`], or [`with_deadline`](Handle::with_deadline) |
//! | a stream or an iterator, on all threads | [`CpuStreamExt`], [`CpuIteratorExt`] |
//! | many tasks | [what joins futures](Task#many-tasks) |
//! | a shutdown | [`CpuRuntime::shutdown_timeout`] |
//!
//! **Future mode** suits engines and long pipelines: a future that computes between its `.await`s
//! is polled on the CPU lane, so its I/O has to be sent back.
//!
//! | what you have | use |
//! |---|---|
//! | a future that computes between its `.await`s | [`spawn`](Handle::spawn) |
//! | a long loop in it | [`yield_if_due`] |
//! | one operation of any client inside a job | [`spawn_io`] |
//! | a client that jobs share | [`send_io`](RequestBuilderExt::send_io), [`IoLayer`](io::IoLayer), [`IoConnector`](io::IoConnector), [`IoShared`] |
//! | a connection or transaction that a job keeps | [`IoOwned`] |
//! | a stream or an HTTP body that a job reads | [`stream_from_io`](Handle::stream_from_io), [`body_from_io`](HandleExt::body_from_io) |
//! | a stream that computes its items, read by I/O | [`stream_from_cpu`](Handle::stream_from_cpu) |
//! | futures that `tokio::spawn` CPU-heavy parts of themselves | [`in_cpu_context`] |
//! | a library that takes a Tokio handle, or an executor of hyper | [`Handle::tokio_handle`], an [`IoHandle`](io::IoHandle) |
//!
//! [The guide](guide) has a page for each question, and [recipes](guide::recipes).
//!
//! File I/O and blocking drivers belong on [`tokio::task::spawn_blocking`], which has threads to
//! spare; the CPU lane has one per core.
//!
//! # What holds
//!
//! - Dropping a [`Task`] cancels its job: a queued job never runs.
//! - A lane with a [limit in time](Builder::max_wait) refuses a job that would wait for longer.
//! - A queue with a [limit](Builder::queue_limit) bounds the memory of the jobs that come
//!   from outside, even if their callers give up. It does not bound the jobs that a job
//!   submits; [their job can](guide::overload#jobs-that-submit-jobs). It serves waiters in
//!   FIFO order, and no job waits for a permit that it holds itself. A stream of
//!   `on_cpu` needs none: its window bounds it.
//! - The [counters](metrics::Metrics) balance: each submitted job is there, or has ended in
//!   one way.
//! - Awaiting what is ready spends Tokio's [cooperative budget](tokio::task::coop), as
//!   Tokio's own types do. Each poll of a future on the lane has that budget.
//! - A panic reaches the awaiter with its payload, and goes no further.
//! - A body or stream that is cut short is an error, never an end.
//! - No task of a job that a shutdown ends hangs, in any form and from anywhere. `shutdown_timeout`
//!   bounds the wait for what runs, and counts the jobs and threads that are left. A job
//!   that never runs reports the reason through its `Task`, or logs a warning if it was
//!   detached. The table is at [`CpuRuntime`].
//! - On Linux the I/O lane gets a core when it wants one, while all of them compute ([`Builder::niceness`]). Under a CPU quota the lane leaves a part of the quota to
//!   the I/O lane ([`Builder::throttle_to_quota`]).
//! - The submitter's `tracing` span and subscriber go with the job. Task-locals
//!   ([`tokio::task_local!`]) do not.
//!
//! # Features
//!
//! | feature | default | gives |
//! |---|---|---|
//! | `tracing` | yes | spans and subscribers carried into jobs; a log of what no task can report |
//! | `axum` | no | [`axum`]: errors that answer 503, a permit before the body is read; for axum 0.8 |
//! | `http-body` | no | [`HandleExt::body_from_io`], [`HandleExt::response_from_io`]: for any [`http_body::Body`] and HTTP client |
//! | `reqwest` | no | [`RequestBuilderExt::send_io`], for reqwest 0.13; implies `http-body` |
//! | `tower` | no | [`IoLayer`](io::IoLayer), for any `Service<http::Request<_>>`, and [`watch::WatchLayer`]; implies `http-body` |
//! | `object_store_0_14`, `object_store_0_13` | no | [`IoConnector`](io::IoConnector), for that version of object_store; implies `http-body` |
//! | `prometheus-client` | no | [`PrometheusCollector`](metrics::PrometheusCollector), for prometheus-client 0.25 |
//! | `metrics-facade` | no | [`MetricsReporter`](metrics::MetricsReporter), for the facade `metrics` 0.24 and its exporters |
//! | `tracing-layer` | no | [`watch::SpanWatch`]: the watch of the I/O lane names spans; implies `tracing` |
//! | `hyper` | no | an [`IoHandle`](io::IoHandle) is an executor of hyper 1: for hyper-util's clients and servers, and tonic's |
//! | `test-util` | no | `Builder::hold_paused_clock`, for tests with Tokio's paused clock |
//!
//! A server needs no feature; `axum` saves code, and `tower` names requests in the watch. On Windows
//! the lane's threads have lower priorities than others, and a step counts as computing while it
//! waits. On macOS they compete as equals. The lane sees no CPU quota on either. A part of the tests
//! runs there (Windows' under wine as well), and nothing was measured.
//!
//! # Modules
//!
//! The root has what most programs name: the lane, its tasks and errors, the free functions and
//! the extension traits. The rest is in modules by subject: [`axum`] (answers for its handlers, by
//! feature), [`stream`] (what computes streams),
//! [`io`] (values, bodies and clients of the I/O lane), [`metrics`] (figures and their exporters),
//! [`watch`] (what blocks the I/O lane), [`future`] (what methods return).
//!
//! # Crates
//!
//! The lanes, their tasks and the bridge are the crate `twolane-core`, all of whose names this one
//! has too. A library or an engine that submits work depends on that one: it changes less. The
//! module [`watch`] is the crate `stallwatch`, which is of use without a CPU lane too, and so is
//! `giveway`, on which the lanes rest: nice values, slices, ticks and CPU quotas.
//!
//! # Public dependencies
//!
//! Types and traits of `tokio`, `http`, `http-body`, `bytes` and `futures-core` 0.3 are in this
//! crate's interface, with `axum-core` 0.5, `serde` and `serde_json` 1, `tower-service` and
//! `tower-layer` 0.3, hyper 1, reqwest 0.13, object_store, `tracing-subscriber` 0.3,
//! `prometheus-client` 0.25 and `metrics` 0.24 by feature, and of `twolane-core` and
//! `stallwatch` 0.1.
//!
//! Other crates pin some of these (DataFusion 55 pins object_store 0.13). A new
//! incompatible release of such a dependency gets a feature of its own, with the
//! version in its name, in a minor release of this crate. Both features share the
//! same code, and both can be on at once. A breaking release removes the older
//! feature, once the crates that pin the older version have moved on. A feature
//! without a version means one version until this crate's next breaking release.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
// Without all features some of the links above lead nowhere.
#![cfg_attr(
    not(all(
        feature = "axum",
        feature = "reqwest",
        feature = "tower",
        feature = "object_store_0_14",
        feature = "prometheus-client",
        feature = "metrics-facade",
        feature = "tracing-layer"
    )),
    allow(rustdoc::broken_intra_doc_links)
)]

#[cfg(feature = "axum")]
pub mod axum;
pub mod guide;
pub mod io;
pub mod metrics;
pub mod stream;
mod sync;
pub mod watch;

#[cfg(feature = "reqwest")]
#[doc(inline)]
pub use io::RequestBuilderExt;
#[doc(inline)]
pub use io::{HandleExt, IoOwned, IoShared};
#[doc(inline)]
pub use stream::{CpuIteratorExt, CpuStreamExt};
#[doc(hidden)]
pub use twolane_core::adapters;
#[doc(inline)]
pub use twolane_core::{
    AbortHandle, BuildError, Builder, Cancelled, CpuRuntime, EnterGuard, Handle, JobContext,
    JoinError, JoinErrorKind, Key, Niceness, NoCurrentHandle, Permit, Priority, Remaining, Task,
    future, in_cpu_context, is_yield_due, spawn_cpu, spawn_io, yield_if_due, yield_now,
};

/// The README's code, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
