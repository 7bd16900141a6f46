//! From `tokio::task::spawn_blocking` to `spawn_cpu`: the same handler before and after.
//!
//! For a service that computes in `spawn_blocking` today. [`before`] is the careful form of it:
//! one semaphore bounds the threads, another one the queue, and the closure holds both permits.
//! [`after`] is the handler with twolane. Copy `after`, [`compress`] and [`cpu_lane`].
//!
//! | | before | after |
//! |---|---|---|
//! | the queue is full | 503, from the first semaphore | 503 with `Retry-After`, from [`JobError`] |
//! | the client goes away while its work is queued | the work never runs | the work never runs |
//! | .. while it runs | it runs to its end | it stops at its next checkpoint ([`after::gzip`]), or runs to its end without one |
//! | a task that is dropped at once, as by `let _ =` | its closure runs | its closure never runs: [`detach`](twolane::Task::detach) the task |
//! | urgent work | waits behind the rest, unless it has semaphores of its own | `with_priority(Priority::High)` |
//! | all cores are busy | the kernel treats Tokio's threads and these alike | on Linux, Tokio's threads get a core first |
//! | a shutdown | queued requests learn of it if you close the semaphores; Tokio waits for the closures that run | queued jobs never run and fail with `JoinErrorKind::Shutdown`; `shutdown_timeout` limits the wait |
//! | `par_iter` in the closure | rayon's global pool, beside the semaphore's threads | the lane's threads |
//!
//! These do not change: the handler does its I/O as before, the closure is `Send + 'static`, and a
//! panic in it is an error of the task. Files and synchronous drivers stay in `spawn_blocking`:
//! the lane has one thread per core, and a closure that waits wastes its core.
//!
//! ```text
//! cargo run --release -p examples --example from_spawn_blocking    # http://127.0.0.1:3000, until ctrl-c
//! curl --data-binary @Cargo.lock http://127.0.0.1:3000/after | gunzip | head
//! ```
//!
//! To copy it: `cargo add twolane -F axum`, `cargo add axum flate2` and `cargo add tokio -F full`.

use std::io::Write;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use twolane::{BuildError, CpuRuntime, Handle, Priority};

/// Requests that are queued or running.
pub const LIMIT: usize = 64;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let cpu = cpu_lane()?;
    let listener = TcpListener::bind(&address).await?;
    axum::serve(listener, routes(cpu.handle().clone())).await?;
    Ok(())
}

pub fn cpu_lane() -> Result<CpuRuntime, BuildError> {
    let builder = CpuRuntime::builder();
    builder.queue_limit(Priority::Normal, LIMIT).build()
}

pub fn routes(cpu: Handle) -> Router {
    let limits = before::Limits {
        queue: Arc::new(Semaphore::new(LIMIT)),
        threads: Arc::new(Semaphore::new(cpu.worker_threads())),
    };
    let before = Router::new().route("/before", post(before::gzip));
    let after = Router::new().route("/after", post(after::gzip));
    before.with_state(limits).merge(after.with_state(cpu))
}

pub mod before {
    use std::convert::Infallible;
    use std::sync::Arc;

    use axum::body::Bytes;
    use axum::extract::State;
    use axum::http::StatusCode;
    use tokio::sync::Semaphore;
    use tokio::task::spawn_blocking;

    #[derive(Clone)]
    pub struct Limits {
        pub queue: Arc<Semaphore>,
        pub threads: Arc<Semaphore>,
    }

    pub async fn gzip(State(limits): State<Limits>, body: Bytes) -> Result<Vec<u8>, StatusCode> {
        let place = limits.queue.try_acquire_owned();
        let place = place.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
        let thread = limits.threads.acquire_owned().await;
        let thread = thread.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
        let work = spawn_blocking(move || {
            // The closure holds them: it runs on after its handler was dropped.
            let _permits = (place, thread);
            super::compress(&body, || Ok::<_, Infallible>(()))
        });
        let Ok(zipped) = work.await.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
        Ok(zipped)
    }
}

pub mod after {
    use axum::body::Bytes;
    use axum::extract::State;
    use twolane::Handle;
    use twolane::axum::JobError;

    pub async fn gzip(State(cpu): State<Handle>, body: Bytes) -> Result<Vec<u8>, JobError> {
        let work = cpu.spawn_cpu_with(move |job| super::compress(&body, || job.checkpoint()));
        Ok(work.await?)
    }
}

/// The work. It calls `go_on` for each block, and stops at its error.
fn compress<E>(bytes: &Bytes, mut go_on: impl FnMut() -> Result<(), E>) -> Result<Vec<u8>, E> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    for block in bytes.chunks(64 << 10) {
        go_on()?;
        gzip.write_all(block).expect("a Vec takes all");
    }
    Ok(gzip.finish().expect("a Vec takes all"))
}
