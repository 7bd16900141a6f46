//! A query service: SQL in the body of a POST, JSON lines out.
//!
//! For services that run DataFusion behind HTTP. A query plans and computes on the CPU lane, reads
//! its files on the I/O lane, and streams its rows while it runs. Copy all of it.
//!
//! - The lane has `Backend::Runtime`: the tasks that DataFusion spawns stay on the lane.
//! - At most [`QUERIES`] queries run or are read by their clients. The next one gets 503.
//! - The first batch comes before the status, so an early error is a 400 or 500. A later error
//!   breaks the body: a client never takes a part of a result for all of it.
//! - If the client goes away, axum drops the stream. The query ends at its next yield.
//! - On ctrl-c the server stops first. Queries have [`DRAIN`] to finish, and then end in an error.
//!
//! ```text
//! cargo run --release -p twolane-datafusion --example query_service -- FOLDER # of Parquet files
//! curl -d 'select count(*) from files' http://127.0.0.1:3000/query
//! ```
//!
//! To copy it: `cargo add twolane twolane-datafusion datafusion axum futures`,
//! `cargo add object_store@0.13 -F fs` and `cargo add tokio -F full`.

use std::{sync::Arc, time::Duration};

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, StatusCode, header::RETRY_AFTER};
use axum::{Router, extract::State, response::ErrorResponse, routing::post};
use datafusion::arrow::{array::RecordBatch, json::LineDelimitedWriter};
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use datafusion::{error::DataFusionError as Cause, execution::context::SQLOptions};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::local::LocalFileSystem;
use tokio::{net::TcpListener, signal::ctrl_c, sync::oneshot, time::timeout};
use twolane::{Backend, BuildError, CpuRuntime, CpuStreamExt, Handle, Priority};
use twolane_datafusion::{IoStore, is_unavailable, run_on, stream_on};

pub type Error = Box<dyn std::error::Error + Send + Sync>;
type App = (Handle, SessionContext);

pub const QUERIES: usize = 16;
/// What a query computes ahead of its client, in bytes.
const AHEAD: usize = 4 << 20;
const DRAIN: Duration = Duration::from_secs(4);
const JOBS: Duration = Duration::from_secs(3);
const ANSWERS: Duration = Duration::from_secs(1);
const BUSY: (StatusCode, [(HeaderName, &str); 1]) =
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")]);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let folder = std::env::args().nth(1).ok_or("name a folder")?;
    let cpu = cpu_lane()?;
    let ctx = context(&cpu.handle())?;
    let options = ParquetReadOptions::default();
    ctx.register_parquet("files", folder, options).await?;
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    serve(listener, cpu, ctx, async { drop(ctrl_c().await) }).await
}

pub fn cpu_lane() -> Result<CpuRuntime, BuildError> {
    let builder = CpuRuntime::builder().backend(Backend::Runtime);
    builder.queue_limit(Priority::Normal, QUERIES).build()
}

/// Reads local files on the I/O lane. (For S3, give the store an `IoConnector`.)
pub fn context(cpu: &Handle) -> Result<SessionContext, Error> {
    let ctx = SessionContext::new();
    let files = Arc::new(IoStore::new(LocalFileSystem::new(), cpu));
    ctx.register_object_store(&"file:///".parse()?, files);
    Ok(ctx)
}

async fn query(State((cpu, ctx)): State<App>, sql: String) -> Result<Body, ErrorResponse> {
    // Without `create external table` and `copy`, which read and write any file.
    let reads = SQLOptions::new().with_allow_ddl(false);
    let reads = reads.with_allow_dml(false).with_allow_statements(false);
    let frame = async move { ctx.sql_with_options(&sql, reads).await };
    let frame = run_on(&cpu, frame).await.map_err(failed)?;
    let batches = stream_on(&cpu, frame, AHEAD).await.map_err(failed)?;
    let json = batches.on_cpu(&cpu).map(|batch| encode(&batch?));
    let mut json = json.buffered(4).map(|lines| lines?);
    let first = json.try_next().await.map_err(failed)?;
    Ok(Body::from_stream(stream::iter(first.map(Ok)).chain(json)))
}

fn encode(batch: &RecordBatch) -> Result<Bytes, Error> {
    let mut writer = LineDelimitedWriter::new(Vec::new());
    writer.write(batch)?;
    writer.finish()?;
    Ok(writer.into_inner().into())
}

fn failed(error: impl Into<Error>) -> ErrorResponse {
    let error = error.into();
    let wrong = (StatusCode::BAD_REQUEST, format!("{error}\n"));
    match error.downcast_ref().map(Cause::find_root) {
        _ if is_unavailable(&*error) => BUSY.into(), // a full queue, or a shutdown
        Some(Cause::SQL(..) | Cause::Plan(_) | Cause::SchemaError(..)) => wrong.into(),
        Some(Cause::ArrowError(..)) => wrong.into(), // a division by 0, a cast
        _ => StatusCode::INTERNAL_SERVER_ERROR.into(),
    }
}

pub async fn serve(
    listener: TcpListener,
    cpu: CpuRuntime,
    ctx: SessionContext,
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let routes = Router::new().route("/query", post(query));
    let (stop_server, stopping) = oneshot::channel::<()>();
    let server = axum::serve(listener, routes.with_state((cpu.handle(), ctx)))
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
