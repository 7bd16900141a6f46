//! What crosses between the lanes: futures that a job hands to the I/O lane, and
//! streams and bodies, through a bounded buffer.

#[cfg(feature = "http-body")]
pub(crate) mod body;
pub(crate) mod buffer;
#[cfg(feature = "http-body")]
mod closing;
pub(crate) mod error;
pub(crate) mod in_cpu_context;
pub(crate) mod on_io;
mod pump;
#[cfg(feature = "http-body")]
pub(crate) mod response;
pub(crate) mod spawn_io;
pub(crate) mod stream;
