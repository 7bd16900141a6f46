//! slatedb with a lane: this code is in the guide.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use object_store::aws::AmazonS3Builder;
//! use object_store::client::ReqwestConnector;
//! use slatedb::{CompactorBuilder, Db};
//! use twolane::CpuRuntime;
//! use twolane::io::IoConnector;
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let cpu = CpuRuntime::new()?;
//! let lane = cpu.handle().tokio_handle()?;
//!
//! // Its requests go to the I/O lane: the lane's own runtime has no sockets.
//! let connector = IoConnector::new(ReqwestConnector::default(), cpu.handle());
//! let s3 = AmazonS3Builder::from_env().with_http_connector(connector).build()?;
//! let store = Arc::new(s3);
//!
//! let compactor = CompactorBuilder::new("db", store.clone()).with_runtime(lane.clone());
//! let db = Db::builder("db", store)
//!     .with_compactor_builder(compactor)
//!     .with_gc_runtime(lane.clone())
//!     .build();
//! // Opened there, it writes its log and its L0 files there, too.
//! let db = lane.spawn(db).await??;
//!
//! db.put("key", "value").await?; // anywhere
//! db.close().await?; // before the lane: without its runtime it never ends
//! cpu.shutdown().await;
//! # Ok(()) }
//! ```
