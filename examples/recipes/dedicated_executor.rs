//! `DedicatedExecutor` over a lane: the interface that InfluxDB IOx has, and many programs with
//! DataFusion have copied. Its callers stay as they are.
//!
//! | `DedicatedExecutor` | here |
//! |---|---|
//! | [`spawn`](DedicatedExecutor::spawn): the future computes on the executor's threads, with what it spawns by `tokio::spawn`; dropping what it returns cancels it | the same: a job [`in_cpu_context`], and what it spawns on as many threads of the lane's own Tokio runtime |
//! | [`spawn_io`]: from inside, back to the runtime that does I/O | the same, of twolane |
//! | [`shutdown`](DedicatedExecutor::shutdown), [`join`](DedicatedExecutor::join): for at most five minutes | the same; a job that runs at the shutdown ends at its next `.await` that waits, and its output is not kept |
//! | a second runtime with `enable_all`, where a client of both runtimes stalls requests | sockets panic in a job: give the I/O to `spawn_io` |
//! | each thread computes at the weight of an I/O thread | on Linux an I/O thread that wakes up has a core first |
//!
//! **Keep `in_cpu_context`.** Without it, each `tokio::spawn` of a caller goes to the I/O runtime and
//! computes there.
//!
//! ```text
//! cargo run --release -p examples --example dedicated_executor
//! ```
//!
//! To copy it: `cargo add twolane`, `cargo add tokio -F full`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use twolane::{BuildError, CpuRuntime, JoinError, in_cpu_context, spawn_io};

/// How long `join` waits.
const LIMIT: Duration = Duration::from_secs(5 * 60);

#[derive(Clone, Debug)]
pub struct DedicatedExecutor(Arc<CpuRuntime>);

#[derive(Debug)]
pub enum JobError {
    /// The executor was shut down.
    WorkerGone,
    Panic {
        msg: String,
    },
}

impl DedicatedExecutor {
    /// Call it on the Tokio runtime that does I/O.
    pub fn new(name: &str, threads: usize) -> Result<Self, BuildError> {
        let lane = CpuRuntime::builder();
        let lane = lane.thread_name(name).worker_threads(threads).build()?;
        Ok(Self(Arc::new(lane)))
    }

    /// Runs the future on the executor. Dropping what this returns cancels it.
    pub fn spawn<F>(&self, task: F) -> impl Future<Output = Result<F::Output, JobError>> + use<F>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let task = self.0.spawn(in_cpu_context(task));
        async { task.await.map_err(JobError::from) }
    }

    /// Ends the jobs, and does not wait for them.
    pub fn shutdown(&self) {
        self.0.shutdown_background();
    }

    /// Ends the jobs, and waits for those that run.
    pub async fn join(&self) {
        let left = self.0.shutdown_timeout(LIMIT).await;
        if !left.is_empty() {
            eprintln!("the executor goes on without an end of {left:?}");
        }
    }
}

impl From<JoinError> for JobError {
    fn from(error: JoinError) -> Self {
        match error.is_panic() {
            true => Self::Panic {
                msg: error.to_string(),
            },
            false => Self::WorkerGone,
        }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WorkerGone => f.write_str("the executor was shut down"),
            Self::Panic { msg } => f.write_str(msg),
        }
    }
}

impl std::error::Error for JobError {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let executor = DedicatedExecutor::new("query", 2)?;
    let settings = executor.spawn(async {
        let text = spawn_io(tokio::fs::read_to_string("Cargo.toml")).await;
        let text = text.expect("the I/O runtime is there").unwrap_or_default();
        // On the executor as well.
        let lines = tokio::spawn(async move { text.lines().filter(|it| it.contains('=')).count() });
        lines.await.expect("it does not panic")
    });
    println!("Cargo.toml has {} settings", settings.await?);
    executor.join().await;
    Ok(())
}
