//! Keep CPU work from freezing your Tokio service.
#![forbid(unsafe_code)]

mod backend;
mod budget;
mod builder;
mod context;
mod error;
mod handle;
mod io;
mod job;
mod lane;
mod panics;
mod runtime;
mod stack;
mod sync;
mod task;
mod trace;
mod warden;

pub use budget::{YieldIfDue, yield_if_due};
pub use builder::{Backend, Builder};
pub use context::{EnterGuard, JobContext, checkpoint, current_job};
pub use error::{BuildError, Cancelled, JoinError, NoCurrentHandle};
pub use handle::{Handle, in_io_context, spawn_cpu, spawn_io, try_spawn_cpu, try_spawn_io};
#[cfg(feature = "http-body")]
pub use io::body::{BodyError, BridgedBody, DEFAULT_BODY_LIMIT};
pub use io::bridge::{BridgeError, Bridged};
pub use io::in_context::InIoContext;
pub use io::lane::IoLaneState;
#[cfg(feature = "reqwest")]
pub use io::reqwest::{RequestBuilderExt, SendIo, SendIoError};
pub use runtime::{CpuRuntime, Shutdown};
pub use task::{AbortHandle, Task};
