//! A report from a database: sqlx in the handler, the CPU-heavy part in a job.
//!
//! For services that make PDFs, CSV files or statistics from rows. The handler awaits sqlx as
//! before. Copy `report` for rows that fit into memory, `export` with `lines` for a stream.
//!
//! - `report` has given its connection back when the job starts. The job runs at `Low`. It asks
//!   a checkpoint for each row, and stops if the client goes away.
//! - `export` sends rows while it reads the next ones. `fetch(&pool)` borrows the pool, and a
//!   response body must be `'static`: `IoOwned::into_stream` makes a stream that owns the pool.
//!   It reads ahead by at most [`AHEAD`] rows, and `on_cpu` encodes them on all threads.
//! - An export keeps its connection until its client has read all of it. Give exports a pool of
//!   their own: its size limits them, and slow clients take none from other handlers.
//!
//! ```text
//! cargo run --release -p twolane-clients --example report -- postgres://user@host/db
//! curl http://127.0.0.1:3000/reports/7 http://127.0.0.1:3000/exports/7
//! ```
//!
//! To copy it: `cargo add twolane -F axum`, `cargo add axum futures`, `cargo add tokio -F full`
//! and `cargo add sqlx -F postgres,runtime-tokio`. A graceful shutdown is in `examples/axum.rs`.

use std::fmt::Write;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::{Router, http::StatusCode, response::ErrorResponse, routing::get};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use sqlx::PgPool;
use tokio::net::TcpListener;
use twolane::axum::JobError;
use twolane::{BuildError, Cancelled, CpuRuntime, Handle, JobContext, JoinError, Priority};
use twolane::{CpuStreamExt, HandleExt};

type Error = Box<dyn std::error::Error + Send + Sync>;
/// Reports whose rows are in memory: queried, queued or running.
pub const REPORTS: usize = 32;
/// Rows that are read ahead, and that are encoded or wait to be sent.
const AHEAD: usize = 1_024;
const WINDOW: usize = 256;

/// `CREATE TABLE sales (customer bigint, month text, cents bigint)`
const SALES: &str = "SELECT month, cents FROM sales WHERE customer = $1 ORDER BY month";
type Sale = (String, i64);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let url = std::env::args().nth(1).ok_or("name a PostgreSQL server")?;
    let pool = PgPool::connect(&url).await?;
    let cpu = cpu_lane()?;
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, routes(cpu.handle().clone(), pool)).await?;
    Ok(())
}

pub fn cpu_lane() -> Result<CpuRuntime, BuildError> {
    let builder = CpuRuntime::builder();
    builder.queue_limit(Priority::Low, REPORTS).build()
}

pub fn routes(cpu: Handle, pool: PgPool) -> Router {
    Router::new()
        .route("/reports/{customer}", get(report))
        .route("/exports/{customer}", get(export))
        .with_state((cpu, pool))
}

async fn report(
    State((cpu, pool)): State<(Handle, PgPool)>,
    Path(customer): Path<i64>,
) -> Result<String, ErrorResponse> {
    let low = cpu.with_priority(Priority::Low);
    let permit = low.try_reserve().map_err(JobError::from)?; // first: it limits the rows too
    let sales = sqlx::query_as(SALES).bind(customer).fetch_all(&pool);
    let sales: Vec<Sale> = sales.await.map_err(failed)?;
    let report = permit.spawn_cpu_with(move |job| render(&sales, job));
    Ok(report.await.map_err(JobError::from)?) // 503, or 500 for a panic
}

/// Stands for your PDF. Ask a checkpoint for each page.
fn render(sales: &[Sale], job: &JobContext) -> Result<String, Cancelled> {
    let (mut report, mut sum) = (String::new(), 0);
    for (month, cents) in sales {
        job.checkpoint()?;
        sum += cents;
        writeln!(report, "{month} {cents:>12} {sum:>12}").expect("a String takes all");
    }
    Ok(report)
}

async fn export(
    State((cpu, pool)): State<(Handle, PgPool)>,
    Path(customer): Path<i64>,
) -> Result<Body, ErrorResponse> {
    let mut lines = lines(&cpu, pool, customer);
    // Until here an error is a status. Later it breaks the body, and the client sees that.
    let first = lines.try_next().await.map_err(failed)?;
    Ok(Body::from_stream(stream::iter(first.map(Ok)).chain(lines)))
}

fn lines(cpu: &Handle, pool: PgPool, customer: i64) -> BoxStream<'static, Result<Bytes, Error>> {
    let rows = cpu.io_owned(pool).into_stream(
        move |pool| sqlx::query_as(SALES).bind(customer).fetch(&*pool),
        AHEAD,
        |_| 1,
    );
    let lines = rows.on_cpu(cpu).map(|row| encode(row??)); // of the stream, and of sqlx
    lines.buffered(WINDOW).map(|line| line?).boxed()
}

fn encode((month, cents): Sale) -> Result<Bytes, Error> {
    Ok(format!("{month},{cents}\n").into())
}

fn failed(error: impl Into<Error>) -> ErrorResponse {
    match error.into().downcast::<JoinError>() {
        Ok(error) => JobError::from(*error).into(), // 503 at a shutdown
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into(),
    }
}
