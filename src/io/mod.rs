//! What lives on the I/O lane and is used by jobs: values, HTTP bodies and responses, and the
//! adapters for clients and stores, whose requests run there.

#[cfg(feature = "http-body")]
pub(crate) mod body;
#[cfg(feature = "http-body")]
mod closing;
pub(crate) mod ext;
#[cfg(any(feature = "object_store_0_13", feature = "object_store_0_14"))]
pub(crate) mod object_store;
pub(crate) mod on_io;
#[cfg(feature = "reqwest")]
pub(crate) mod reqwest;
#[cfg(feature = "http-body")]
mod response;
#[cfg(feature = "tower")]
pub(crate) mod tower;
