//! DataFusion queries on a CPU lane of `twolane`, so that they do not freeze the service that
//! runs them.
//!
//! DataFusion splits a query into Tokio tasks. Where each of them runs decides whether the
//! I/O runtime's health checks wait for a hash join. This crate has them run on the lane:
//!
//! ```
//! use datafusion::prelude::SessionContext;
//! use twolane::{Backend, CpuRuntime};
//! use twolane_datafusion::collect_on;
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cpu = CpuRuntime::builder().backend(Backend::Runtime).build()?;
//! let ctx = SessionContext::new();
//! # ctx.register_batch("numbers", numbers()?)?;
//! let frame = ctx.table("numbers").await?;
//! let batches = collect_on(&cpu.handle(), frame).await?;
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
//! # Which backend
//!
//! | | [`Backend::Runtime`](twolane_core::Backend::Runtime) | [`Backend::Rayon`](twolane_core::Backend::Rayon) |
//! |---|---|---|
//! | the tasks of a query | Tokio tasks of the lane's runtime | jobs, by [`LaneTracer`] |
//! | cost | that of a second runtime | for each task two wake-ups of an I/O thread, too: queries of some milliseconds take a tenth longer |
//! | a store without `IoConnector` or [`IoStore`] | **fails**: *"IO is disabled"*; local files work | works, on the I/O lane, and its files' threads are niced |
//! | the lane's counters | the query is a job, `suspended` while its tasks compute; a stream that is dropped is `completed` | so is each task |
//!
//! Take `Backend::Runtime` for a lane that runs queries. On a rayon lane that you have for other
//! work, they run as well.
//!
//! # What runs where
//!
//! | | lane |
//! |---|---|
//! | planning, and all operators of [`collect_on`] and [`stream_on`] | CPU |
//! | the tasks that they spawn (`SpawnedTask`, `JoinSet`) | CPU, at the query's priority |
//! | requests to S3 and the like: a store that is built with `twolane`'s `IoConnector` | I/O |
//! | local files: a store in [`IoStore`] | I/O: its blocking pool |
//! | what DataFusion gives to `spawn_blocking` (it reads spilled files, and parses JSON that is one array) | a blocking pool: that of the lane's runtime, on rayon that of the I/O runtime |
//! | a bare `tokio::spawn` in a table provider or a UDF of yours | CPU; on rayon I/O: use `twolane::Handle::current().spawn(..)` there |
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
//! | the lane's queue is full, or the lane was shut down: [`is_unavailable`] | `External`, with a [`twolane_core::JoinError`]; from [`stream_on`]: a [`twolane_core::BridgeError`] |
//! | its I/O runtime is gone | the same two |
//! | the query panicked | the same as at a shutdown, if the panic was in the query itself; in one of its tasks: DataFusion's own, `External` with a [`tokio::task::JoinError`], often inside a `Context` |
//!
//! # What it does not do
//!
//! - **A query that was dropped may keep its threads.** DataFusion gives way once for each 128
//!   batches that a partition of the query's tables has given. An aggregate over fewer (a million
//!   rows), or a join that makes many rows out of few batches, computes on after it was dropped, on
//!   any runtime, for minutes even. While no thread of the lane is free to drop it, it is `queued`
//!   and keeps its permit, so that new queries may find the queue full. After that no counter shows
//!   it. Run queries that you do not know at a [`Priority`](twolane_core::Priority) of their own:
//!   that protects other jobs, though not other queries.
//! - [`run_on`] has a permit until its future ends, and [`stream_on`] takes another. Between the
//!   two, another query may take the last one.
//! - The tracer of a rayon lane is the process's. Queries that run elsewhere are not touched, if
//!   their thread has no current handle of `twolane` ([`LaneTracer`] says when).

mod query;
mod store;
mod tracer;
mod unavailable;

pub use query::{collect_on, run_on, stream_on};
pub use store::IoStore;
pub use tracer::LaneTracer;
pub use unavailable::is_unavailable;
