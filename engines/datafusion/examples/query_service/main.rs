//! A query service: SQL in the body of a POST, JSON lines or Arrow IPC out.
//!
//! For services that run DataFusion behind HTTP. A query plans and computes on the CPU lane, reads
//! its files on the I/O lane, and streams its rows while it runs. Copy the folder.
//!
//! - The tasks that DataFusion spawns stay on the lane.
//! - At most [`QUERIES`] queries run or are read by their clients. The next one gets 503.
//! - The first batch comes before the status, so an early error is a 400 or 500. A later error
//!   breaks the body: a client never takes a part of a result for all of it.
//! - All queries together have [`MEMORY`] bytes. Sorts and aggregates that lack room spill to the
//!   folder for temporary files; another query gets 507, with what held the memory.
//! - [`LIMIT`] after its begin a query ends, also if its client does not read: with a 504, or in
//!   a broken body. If the client goes away, axum drops the stream. Either way the query ends at
//!   its next yield.
//! - On ctrl-c the server stops first. Queries have [`DRAIN`] to finish, and then end in an error.
//!
//! ```text
//! cargo run --release -p twolane-datafusion --example query_service -- FOLDER # of Parquet files
//! curl -d 'select count(*) from files' http://127.0.0.1:3000/query
//! curl -H 'accept: application/vnd.apache.arrow.stream' -d ..
//! ```
//!
//! To copy it: `cargo add twolane datafusion axum futures`, `cargo add object_store@0.13 -F fs` and
//! `cargo add tokio -F full`; `twolane-datafusion` is not published: take it by its path or as a
//! git dependency.

mod answer;
mod format;

use std::{sync::Arc, time::Duration};

use axum::Router;
use axum::routing::{get, post};
use datafusion::execution::{memory_pool::FairSpillPool, runtime_env::RuntimeEnvBuilder};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use object_store::local::LocalFileSystem;
use tokio::{net::TcpListener, signal::ctrl_c, sync::oneshot, time::timeout};
use twolane::{BuildError, CpuRuntime, Handle, Priority};
use twolane_datafusion::IoStore;

pub type Error = Box<dyn std::error::Error + Send + Sync>;
pub type App = (Handle, SessionContext, Duration);

pub const QUERIES: usize = 16;
/// What a query needs, in bytes, times their number.
pub const MEMORY: usize = QUERIES * (64 << 20);
const LIMIT: Duration = Duration::from_secs(30);
const DRAIN: Duration = Duration::from_secs(4);
const JOBS: Duration = Duration::from_secs(3);
const ANSWERS: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let folder = std::env::args().nth(1).ok_or("name a folder")?;
    let cpu = cpu_lane()?;
    let ctx = context(cpu.handle())?;
    let options = ParquetReadOptions::default();
    ctx.register_parquet("files", folder, options).await?;
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    serve(listener, cpu, ctx, LIMIT, async { drop(ctrl_c().await) }).await
}

pub fn cpu_lane() -> Result<CpuRuntime, BuildError> {
    CpuRuntime::builder()
        .queue_limit(Priority::Normal, QUERIES)
        .build()
}

pub fn context(cpu: &Handle) -> Result<SessionContext, Error> {
    context_within(MEMORY, cpu)
}

/// Reads local files on the I/O lane. (For S3, give the store an `IoConnector`.)
pub fn context_within(memory: usize, cpu: &Handle) -> Result<SessionContext, Error> {
    let pool = Arc::new(FairSpillPool::new(memory));
    let environment = RuntimeEnvBuilder::new()
        .with_memory_pool(pool)
        .build_arc()?;
    let ctx = SessionContext::new_with_config_rt(SessionConfig::new(), environment);
    let files = Arc::new(IoStore::new(LocalFileSystem::new(), cpu));
    ctx.register_object_store(&"file:///".parse()?, files);
    Ok(ctx)
}

pub async fn serve(
    listener: TcpListener,
    cpu: CpuRuntime,
    ctx: SessionContext,
    limit: Duration,
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let routes = Router::new().route("/query", post(answer::query));
    let routes = routes.route("/health", get(|| async {}));
    let (stop_server, stopping) = oneshot::channel::<()>();
    let server = axum::serve(
        listener,
        routes.with_state((cpu.handle().clone(), ctx, limit)),
    )
    .with_graceful_shutdown(async { drop(stopping.await) });
    let mut server = tokio::spawn(server.into_future());
    stop.await;
    drop(stop_server);
    if timeout(DRAIN, &mut server).await.is_err() {
        cpu.shutdown_timeout(JOBS).await; // the queries end in an error ..
        let _ = timeout(ANSWERS, server).await; // .. which the server sends
    }
    Ok(())
}
