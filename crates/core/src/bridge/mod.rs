//! What crosses between the lanes: futures that a job hands to the I/O lane, and
//! streams, through a bounded buffer.

pub(crate) mod buffer;
pub(crate) mod error;
pub(crate) mod in_cpu_context;
pub(crate) mod spawn_io;
pub(crate) mod writer;
