//! What runs on, or belongs to, the I/O lane.

#[cfg(feature = "http-body")]
pub(crate) mod body;
pub(crate) mod bridge;
pub(crate) mod in_context;
pub(crate) mod lane;
mod pump;
#[cfg(feature = "reqwest")]
pub(crate) mod reqwest;
pub(crate) mod spawn;
mod stream;
