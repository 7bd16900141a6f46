//! What runs on, or belongs to, the I/O lane.

#[cfg(feature = "http-body")]
pub(crate) mod body;
pub(crate) mod bridge;
pub(crate) mod in_context;
pub(crate) mod lane;
#[cfg(any(feature = "object_store_0_13", feature = "object_store_0_14"))]
pub(crate) mod object_store;
mod pump;
#[cfg(feature = "reqwest")]
pub(crate) mod reqwest;
#[cfg(feature = "http-body")]
mod response;
pub(crate) mod spawn;
mod stream;
#[cfg(feature = "tower")]
pub(crate) mod tower;
