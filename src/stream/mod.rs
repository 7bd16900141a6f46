//! Streams and iterators whose items are computed on the CPU lane.
//!
//! Use it for many items of one kind, each with work of its own: blocks to decode, rows to
//! filter, parts to compress. `on_cpu` runs them on all threads of the lane, small ones
//! together, in the order of the source or as they are finished. For a single job there is
//! [`spawn_cpu`](crate::Handle::spawn_cpu); for one sequential producer
//! [`stream_from_cpu`](crate::Handle::stream_from_cpu).
//!
//! ```
//! # #[tokio::main] async fn main() -> Result<(), twolane::JoinError> {
//! use futures::TryStreamExt;
//! use twolane::stream::{Buffered, CpuStreamExt};
//!
//! const WINDOW: usize = 64; // items under way
//! let cpu = twolane::CpuRuntime::new().unwrap();
//! let pages = futures::stream::iter(["<a>", "<b><c>"]);
//! let tags: Buffered<usize> = pages
//!     .on_cpu(cpu.handle())
//!     .map(|page| page.matches('<').count())
//!     .buffered(WINDOW);
//! assert_eq!(tags.try_collect::<Vec<_>>().await?, [1, 2]);
//! # Ok(()) }
//! ```
//!
//! | | |
//! |---|---|
//! | from a source to its stages | [`CpuStreamExt`], [`CpuIteratorExt`] (also at the crate's root) |
//! | the stages, the window, the start | [`OnCpu`] |
//! | a source of lines | [`chunks_of_lines`] |
//! | the outputs | [`Buffered`] |
//! | what types an [`OnCpu`] alone | [`Stage`], [`Unchanged`], [`Iter`], [`Limit`], [`ByItems`], [`ByBytes`] |
//!
//! [The guide](crate::guide::streams) has the whole story: recipes, what holds, the cost.

mod batch;
mod buffered;
pub(crate) mod drop_on_lane;
mod ext;
pub(crate) mod late_reader;
mod limit;
mod lines;
mod on_cpu;
mod pace;
mod pump;
mod runner;
mod shared;
mod stage;
mod start;
mod unread;
mod window;
mod worker;
mod workers;

pub use buffered::Buffered;
pub use ext::{CpuIteratorExt, CpuStreamExt, Iter};
pub use limit::{ByBytes, ByItems, Limit};
pub use lines::{ChunksOfLines, chunks_of_lines};
pub use on_cpu::OnCpu;
pub use stage::{Stage, Unchanged};
