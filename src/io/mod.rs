//! Adapters for HTTP clients and stores: their requests run on the I/O lane.

#[cfg(any(feature = "object_store_0_13", feature = "object_store_0_14"))]
pub(crate) mod object_store;
#[cfg(feature = "reqwest")]
pub(crate) mod reqwest;
#[cfg(feature = "tower")]
pub(crate) mod tower;
