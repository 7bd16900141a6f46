//! Values, HTTP bodies, clients and streams that live on the I/O lane, for jobs of the CPU lane.
//!
//! A job that holds a connection and computes keeps it from all others. So the I/O lane does a
//! client's whole work, and the job gets the result. Use
//!
//! | you have | use |
//! |---|---|
//! | one operation of any client | [`spawn_io`](crate::spawn_io) |
//! | a connection or transaction that a job keeps | [`IoOwned`] |
//! | a pool or client that jobs share | [`IoShared`] |
//! | a reqwest request | [`RequestBuilderExt::send_io`] (feature `reqwest`) |
//! | a tower service over HTTP: hyper-util, tonic | [`IoLayer`] (feature `tower`) |
//! | an object store | [`IoConnector`] (features `object_store_0_14`, `object_store_0_13`) |
//! | any other HTTP client, or a body | [`HandleExt`] (feature `http-body`) |
//! | a stream from one lane to the other | [`stream_from_io`](crate::Handle::stream_from_io), [`stream_from_cpu`](crate::Handle::stream_from_cpu): a [`Bridged`] |
//! | code that needs the I/O lane alone | [`IoHandle`], of [`Handle::io`](crate::Handle::io) |
//!
//! ```
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use twolane::io::{HandleExt, IoOwned};
//!
//! let cpu = twolane::CpuRuntime::new()?;
//! let (sender, receiver) = tokio::sync::mpsc::channel(8);
//! let mut receiver: IoOwned<_> = cpu.handle().io_owned(receiver);
//! let job = cpu.spawn(async move {
//!     receiver.with(async |receiver| receiver.recv().await).await // polled on the I/O lane
//! });
//! sender.send("ping").await?;
//! assert_eq!(job.await??, Some("ping"));
//! # Ok(()) }
//! ```
//!
//! The names that most programs use are also at the crate's root.
//! [The guide](crate::guide::clients) has a page with a row for each client.

#[cfg(feature = "http-body")]
mod body;
#[cfg(feature = "http-body")]
mod closing;
mod ext;
#[cfg(any(feature = "object_store_0_13", feature = "object_store_0_14"))]
mod object_store;
mod owned;
#[cfg(feature = "reqwest")]
mod reqwest;
#[cfg(feature = "http-body")]
mod response;
#[cfg(feature = "tower")]
mod tower;

#[cfg(feature = "reqwest")]
pub use self::reqwest::{RequestBuilderExt, SendIo, SendIoError};
#[cfg(feature = "http-body")]
pub use body::{BodyError, BridgedBody, DEFAULT_BODY_LIMIT};
pub use ext::HandleExt;
#[cfg(any(feature = "object_store_0_13", feature = "object_store_0_14"))]
pub use object_store::IoConnector;
pub use owned::{IoOwned, IoShared, SendAsyncFnOnce};
#[cfg(feature = "tower")]
pub use tower::{IoBody, IoLayer, IoService};
#[doc(inline)]
pub use twolane_core::io::{BridgeError, BridgeWriter, Bridged, IoHandle};
