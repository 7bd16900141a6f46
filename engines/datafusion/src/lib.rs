//! DataFusion queries on a CPU lane of `twolane`, so that they do not freeze the service that
//! runs them.
//!
//! DataFusion splits a query into Tokio tasks. Where each of them runs decides whether the
//! I/O runtime's health checks wait for a hash join. This crate has them run on the lane:
//!
//! ```
//! use datafusion::prelude::SessionContext;
//! use twolane::CpuRuntime;
//! use twolane_datafusion::collect_on;
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cpu = CpuRuntime::new()?;
//! let ctx = SessionContext::new();
//! # ctx.register_batch("numbers", numbers()?)?;
//! let frame = ctx.table("numbers").await?;
//! let batches = collect_on(cpu.handle(), frame).await?;
//! assert_eq!(batches[0].num_rows(), 3);
//! cpu.shutdown().await;
//! # Ok(()) }
//! # fn numbers() -> datafusion::error::Result<datafusion::arrow::array::RecordBatch> {
//! #     use datafusion::arrow::array::{ArrayRef, Int32Array, RecordBatch};
//! #     let numbers: ArrayRef = std::sync::Arc::new(Int32Array::from(vec![1, 2, 3]));
//! #     Ok(RecordBatch::try_from_iter([("n", numbers)])?)
//! # }
//! ```
//!
//! # How
//!
//! A query is one job, [`in_cpu_context`](twolane_core::in_cpu_context). Its tasks are Tokio's, on the
//! lane's own runtime. The cost is that of a second runtime. The job is `suspended` in the lane's
//! counters while its tasks compute, a stream that is dropped is `completed`, and the tasks are in
//! `tokio_tasks`. That runtime has no sockets: **a store without `IoConnector` or [`IoStore`] fails**,
//! *"IO is disabled"*. Local files work.
//!
//! A query that you spawn by yourself, as a plain job, computes on the I/O runtime, unless there is a
//! [`LaneTracer`].
//!
//! # What runs where
//!
//! | | lane |
//! |---|---|
//! | parsing and planning by [`sql_on`] | CPU, at `Low` |
//! | its operators; planning by [`collect_on`] and [`stream_on`], and their operators | CPU, at the priority of the handle |
//! | the tasks that they spawn (`SpawnedTask`, `JoinSet`) | CPU, at the query's priority |
//! | requests to S3 and the like: a store that is built with `twolane`'s `IoConnector` | I/O |
//! | local files: a store in [`IoStore`] | I/O: its blocking pool |
//! | what DataFusion gives to `spawn_blocking` (it reads spilled files, and parses JSON that is one array) | the blocking pool of the lane's own runtime |
//! | a bare `tokio::spawn` in a table provider or a UDF of yours | CPU |
//!
//! # A dropped query ends
//!
//! DataFusion gives way once for each 128 batches that a partition of the query's tables has given.
//! A join that makes many rows out of few batches, and an aggregate over fewer, would compute on for
//! minutes after it was dropped, on any runtime. So the plans of [`collect_on`], [`stream_on`] and
//! [`sql_on`] yield each 5 ms ([`EnsureYields`]; add it to the session for [`run_on`]). What one
//! call of an operator does is not divided. [`threads_of_ended_queries`] counts the threads that
//! compute for a query that has ended.
//!
//! # Memory
//!
//! The lane's [`queue_limit`](twolane_core::Builder::queue_limit) bounds how many queries hold memory
//! at a time, and DataFusion's memory pool how much all of them hold together: so size the pool as
//! the limit times what one query needs.
//!
//! ```
//! use std::sync::Arc;
//!
//! use datafusion::execution::memory_pool::FairSpillPool;
//! use datafusion::execution::runtime_env::RuntimeEnvBuilder;
//! use datafusion::prelude::{SessionConfig, SessionContext};
//! use twolane::{CpuRuntime, Priority};
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! const QUERIES: usize = 8;
//! const EACH: usize = 256 << 20; // bytes
//!
//! let pool = FairSpillPool::new(QUERIES * EACH);
//! let memory = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(pool)).build_arc()?;
//! let ctx = SessionContext::new_with_config_rt(SessionConfig::new(), memory);
//! let cpu = CpuRuntime::builder().queue_limit(Priority::Normal, QUERIES).build()?;
//! # cpu.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! The ninth query fails with an error that [`is_unavailable`], or waits, if you have it wait for a
//! permit ([`Handle::reserve`](twolane_core::Handle::reserve)). Within the pool, sorts and aggregates
//! that lack room spill to disk, and others fail with DataFusion's `ResourcesExhausted`. The pool
//! does not count the batches that are on their way between operators, tables in memory, nor what
//! waits for a stream's reader: that is the stream's `limit`.
//!
//! # Versions
//!
//! | twolane-datafusion | DataFusion | object_store | Rust |
//! |---|---|---|---|
//! | 0.1 | 55 | 0.13 | 1.94 |
//!
//! # Errors
//!
//! A query that the lane ends, or does not take, is an error of DataFusion:
//!
//! | | [`DataFusionError`](datafusion::error::DataFusionError) |
//! |---|---|
//! | the lane's queue is full, or the lane was shut down: [`is_unavailable`] | `External`, with a [`twolane_core::JoinError`]; from [`stream_on`] and [`sql_on`]: a [`twolane_core::io::BridgeError`] |
//! | its I/O runtime is gone | the same two |
//! | the query panicked | the same as at a shutdown, if the panic was in the query itself (while [`sql_on`] plans: a `JoinError`); in one of its tasks: DataFusion's own, `External` with a [`tokio::task::JoinError`], often inside a `Context` |
//!
//! # What it does not do
//!
//! - **It does not stop an operator in the middle of a call.** Such a call builds the hash table of
//!   a join's smaller side, finishes an aggregate or a window, or runs a UDF on a batch. It takes
//!   longer the more rows it has, and after a drop it goes on to its end. Meanwhile a thread of the
//!   lane is missing, and if none is free to drop the query, it keeps its permit, so that new queries
//!   may find the queue full. Run queries that you do not know at a
//!   [`Priority`](twolane_core::Priority) of their own: that protects other jobs, though not other
//!   queries.
//! - **It does not bound the time and the memory of planning.** Some texts of 200 bytes are planned
//!   for hours. [`sql_on`] has them on a thread of `Low` meanwhile ([what that
//!   means](sql_on#texts-from-outside)). Texts of strangers belong in a process of their own.
//! - **It does not bound the SQL that you parse yourself.** What [`sql_on`] takes overflows no stack
//!   (`SqlLimits`); `SessionContext::sql` takes all, also in [`run_on`].
//! - [`run_on`] does not see the plans of its future: without [`EnsureYields`] in the session, they
//!   yield as DataFusion has them yield.
//! - [`run_on`] has a permit until its future ends, and [`stream_on`] takes another. Between the
//!   two, another query may take the last one. [`sql_on`] takes one for both.
//! - Its tracer ([`LaneTracer`]) is the process's. Queries that run elsewhere are not touched, if
//!   their thread has no current handle of `twolane`.

#[cfg(feature = "sql")]
mod limits;
mod parts;
mod polls;
mod query;
#[cfg(feature = "sql")]
mod sql;
mod store;
mod tracer;
mod unavailable;
mod yields;

/// The atomics of `polls.rs`. In its model (`tests/models`) they are loom's.
mod sync {
    pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};
}

#[cfg(feature = "sql")]
pub use limits::SqlLimits;
pub use parts::threads_of_ended_queries;
pub use query::{collect_on, run_on, stream_on};
#[cfg(feature = "sql")]
pub use sql::{sql_on, sql_with_options_on};
pub use store::IoStore;
pub use tracer::LaneTracer;
pub use unavailable::is_unavailable;
pub use yields::EnsureYields;
