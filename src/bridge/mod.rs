//! What crosses from one lane to the other: futures that a job hands to the I/O lane,
//! and streams and bodies, through a buffer bounded in bytes.

#[cfg(feature = "http-body")]
pub(crate) mod body;
pub(crate) mod buffer;
pub(crate) mod in_context;
mod pump;
#[cfg(feature = "http-body")]
pub(crate) mod response;
pub(crate) mod spawn_io;
pub(crate) mod stream;
