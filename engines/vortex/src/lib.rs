//! [Vortex](https://docs.rs/vortex) on a CPU lane of `twolane`: scans decode and writers compress
//! there, and requests stay on the service's Tokio runtime.
//!
//! Vortex spawns all that it does on a runtime of its session, a trait with four calls. On Tokio
//! three of them are `tokio::spawn`: a scan then decodes on the threads that answer health checks.
//! [`on_lane`] is that trait on the two lanes:
//!
//! ```
//! # use futures::TryStreamExt;
//! # use twolane_core::CpuRuntime;
//! # use vortex::VortexSessionDefault;
//! # use vortex::array::{IntoArray, VortexSessionExecute, arrays::PrimitiveArray};
//! # use vortex::file::{OpenOptionsSessionExt, WriteOptionsSessionExt};
//! # use vortex::session::VortexSession;
//! use twolane_vortex::{on_lane, run_on, stream_on};
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cpu = CpuRuntime::new()?;
//! let session = on_lane(VortexSession::default(), cpu.handle()); // once, in `main`
//! # let mut bytes = Vec::new();
//! # let numbers: PrimitiveArray = (0..1_000_u64).collect();
//! # let write = session.write_options();
//! # write.write(&mut bytes, numbers.into_array().to_array_stream()).await?;
//! # let options = session.open_options();
//! # let open = async move { options.open_buffer(bytes) };
//!
//! let file = run_on(cpu.handle(), open).await?; // or `open_path`, `open_object_store`
//! let scan = file.scan()?.map(move |array| {
//!     // Decodes in a job of the lane. The reader would otherwise, below.
//!     Ok(array.execute::<PrimitiveArray>(&mut session.create_execution_ctx())?)
//! });
//! let size = |part: &PrimitiveArray| part.as_slice::<u64>().len() * 8;
//! let mut parts = Box::pin(stream_on(cpu.handle(), scan.into_stream()?, 4 << 20, size));
//! let mut rows = 0;
//! while let Some(part) = parts.try_next().await? {
//!     rows += part.as_slice::<u64>().len();
//! }
//! assert_eq!(rows, 1_000);
//! # Ok(()) }
//! ```
//!
//! # What runs where
//!
//! | vortex calls | for | lane |
//! |---|---|---|
//! | `spawn` | the splits of a scan: their filters, projections and `map`; the driver that joins the reads of a file into requests; a writer's layouts | CPU |
//! | `spawn_cpu` | preparing a scan; `map` of a scan with a filter and a limit; compressing a chunk, its statistics | CPU |
//! | `spawn_io` | requests to stores of the crate `object_store` | I/O |
//! | `spawn_blocking` | local files | I/O: its blocking pool |
//!
//! Vortex documents `spawn` as one for futures that do not compute. Its scans decode in them all
//! the same, so a runtime that moves `spawn_cpu` alone leaves that where it was.
//!
//! ## What is not moved
//!
//! | | runs | what to do |
//! |---|---|---|
//! | arrays that a scan yields: they are *encoded*, and a projection is not computed before its array is executed | where the reader executes them | execute them in `ScanBuilder::map`, or read in [`run_on`] |
//! | parsing the footer in `open_*` | where it is awaited | [`run_on`] |
//! | the request for a file's size in `open_object_store`, and uploads by `ObjectStoreWrite` | polled where `open_*` and `write` are awaited | in [`run_on`] the store needs `twolane`'s `IoConnector`, so that the client is polled in time; or give `with_file_size`, and await the write in the handler |
//! | a `VortexReadAt` of your own | CPU | spawn its requests by `Handle::spawn_io` of the session's `handle()`, as the example `scan` does |
//!
//! A request goes out when the driver of its file, a job, has its turn. With all threads of the
//! lane in long closures of other origin it waits for one of them.
//!
//! # Versions
//!
//! | twolane-vortex | vortex | Rust |
//! |---|---|---|
//! | 0.1 | 0.90 | 1.95 |
//!
//! To build it, vortex needs a C++ compiler and libclang: `apt-get install g++ libclang-dev`.
//!
//! # Errors
//!
//! Vortex awaits its jobs by a type that has no error: one that its runtime drops **panics** in its
//! awaiter, with *"Runtime dropped task without completing it"*. After a shutdown of the lane that
//! is a panic in the handler that reads a scan. [`run_on`] and [`stream_on`] make errors of it:
//!
//! | | [`VortexError`](vortex_error::VortexError) |
//! |---|---|
//! | the lane's queue is full, the deadline passed, the lane was shut down: [`is_unavailable`] | `External`, with a [`twolane_core::JoinError`], from [`stream_on`] also a [`twolane_core::io::BridgeError`] |
//! | the I/O runtime is gone | the same |
//! | a panic while decoding or compressing | the same, with its text |
//!
//! After a shutdown the panic hook may still print vortex's panic.
//!
//! # What it does not do
//!
//! - A split that computes goes on until its next `.await` after its scan was dropped: for one
//!   chunk of a column.
//! - Vortex does not run a closure of `spawn_cpu` or `spawn_blocking` that was detached while it was
//!   queued, on any runtime.
//! - The labels of the crate `custom-labels`, for profilers, do not go along into jobs.

mod executor;
mod run;

pub use executor::on_lane;
pub use run::{is_unavailable, run_on, stream_on};
