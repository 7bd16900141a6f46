//! How long steps take, and what the queue makes of that: which call sites are short, and how short
//! jobs and others share the threads.

pub(crate) mod clock;
pub(crate) mod length;
mod mean;
mod shares;
mod took;

pub(crate) use length::Length;
pub(crate) use mean::Mean;
pub(crate) use shares::Shares;
pub(crate) use took::{Step, Took};
