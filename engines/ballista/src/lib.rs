//! Ballista's executor on `twolane`: its stages compute on a CPU lane, and the I/O runtime
//! that they share a machine with goes on with heartbeats, shuffle connections and S3.
//!
//! An executor is Ballista's own [`start_executor_process`], with its [`ExecutorProcessConfig`]
//! passed through [`on_lane`]:
//!
//! ```no_run
//! use std::sync::Arc;
//! use ballista_core::config::TaskSchedulingPolicy;
//! use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
//! use twolane::CpuRuntime;
//! use twolane_ballista::on_lane;
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cpu = CpuRuntime::new()?;
//! let config = ExecutorProcessConfig {
//!     scheduler_host: "scheduler".to_owned(),
//!     task_scheduling_policy: TaskSchedulingPolicy::PullStaged,
//!     ..Default::default()
//! };
//! let config = on_lane(config, cpu.handle())?;
//! start_executor_process(Arc::new(config)).await?;
//! cpu.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! # What runs where
//!
//! | | lane |
//! |---|---|
//! | a stage: its operators, the tasks that they spawn, shuffle writers, the decoding of what they read | CPU |
//! | heartbeats, `poll_work`, the executor's gRPC and Flight services | I/O |
//! | shuffle connections to other executors | I/O |
//! | requests to S3 and the like: stores that are built with `twolane`'s `IoConnector` ([below](#object-stores)) | I/O |
//! | decoding the plan of a task: in the gRPC service if tasks are pushed, else between two polls | I/O |
//! | shuffle files that the Flight service reads for others, as they are | the blocking pool of the I/O runtime |
//! | the same with `ballista.shuffle.remote_read_prefer_flight`: [decoding and compressing](#what-it-does-not-do) | I/O |
//! | local tables | the blocking pool of the lane |
//! | making a stage's executor | as decoding its plan if the executor polls, else `task_runner` |
//! | collecting a stage's statistics, waiting for the lane | Ballista's own `task_runner` threads |
//!
//! Ballista spawns what computes by a bare `tokio::spawn`: in a stage that makes tasks of the lane's
//! own Tokio runtime.
//!
//! # Object stores
//!
//! Inside a stage there is no I/O driver, so a store has to send its requests on the I/O lane. A
//! store that does not fails in its first request, with Tokio's message *"A Tokio 1.x context was
//! found, but IO is disabled"*. Build it once, with `twolane::io::IoConnector`:
//!
//! ```
//! use std::sync::Arc;
//! use ballista_executor::executor_process::ExecutorProcessConfig;
//! use datafusion::execution::runtime_env::RuntimeEnv;
//! use object_store::aws::AmazonS3Builder;
//! use object_store::client::ReqwestConnector;
//! use twolane::io::IoConnector;
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let cpu = twolane::CpuRuntime::new()?;
//! let connector = IoConnector::new(ReqwestConnector::default(), cpu.handle());
//! let store = AmazonS3Builder::new()
//!     .with_bucket_name("lake")
//!     .with_region("eu-central-1")
//!     .with_http_connector(connector)
//!     .build()?;
//! let environment = RuntimeEnv::default();
//! environment.register_object_store(&"s3://lake".parse()?, Arc::new(store));
//! let environment = Arc::new(environment);
//! let config = ExecutorProcessConfig {
//!     override_runtime_producer: Some(Arc::new(move |_| Ok(environment.clone()))),
//!     ..Default::default()
//! };
//! # Ok(()) }
//! ```
//!
//! # Versions
//!
//! | twolane-ballista | Ballista | DataFusion | object_store | Rust |
//! |---|---|---|---|---|
//! | 0.1 | 55.0.0 | 55 | 0.13 | 1.94 |
//!
//! # Errors
//!
//! Those of the stage, and those of the lane: a stage that a shutdown cuts short fails, as it does
//! if its queue is full or if it panics ([how](twolane_datafusion#errors)). Ballista's scheduler
//! then decides whether to try again.
//!
//! # What it does not do
//!
//! - It bounds no SQL. An executor gets plans: a client of Ballista parses and plans where it calls
//!   `SessionContext::sql`, without the limits of
//!   [`sql_on`](twolane_datafusion::SqlLimits), and the executor decodes what it is sent, as
//!   deep as that is, on a thread of the I/O runtime. A stack that overflows ends the process. Let
//!   only clients that you trust reach the scheduler and the executors, and check a text from
//!   outside before it is planned.
//! - A stage that is cancelled leaves its shuffle writers running, as Ballista's own executor
//!   does: they are tasks that it does not abort.
//! - With `ballista.shuffle.remote_read_prefer_flight`, which is off by default, the Flight service
//!   compresses what it sends on the I/O lane's workers, and those decode sorted shuffle files
//!   too. Leave it off, or bring a service of your own
//!   ([`override_arrow_flight_service`](ExecutorProcessConfig::override_arrow_flight_service)).

mod engine;
mod pool;

use std::sync::Arc;
use std::time::Duration;

use ballista_core::error::{BallistaError, Result};
use ballista_executor::executor_process::ExecutorProcessConfig;
#[cfg(doc)]
use ballista_executor::executor_process::start_executor_process;
use twolane_core::Handle;

use engine::LaneEngine;
use pool::IoClientPool;

/// Has the stages of an executor run on the CPU lane of `handle`, and its shuffle connections
/// on the I/O lane.
///
/// It sets [`override_execution_engine`](ExecutorProcessConfig::override_execution_engine).
///
/// Give the lane as many threads as the executor has
/// [`vcores`](ExecutorProcessConfig::vcores): that many stages run at a time.
///
/// # Errors
///
/// [`BallistaError::Configuration`]:
///
/// - if `override_execution_engine` is set: the shuffle readers of such an engine may open their
///   connections where no I/O driver is, and panic. Ballista takes a reader that panicked for one
///   at its end: the query lacks rows, and no error says so;
/// - if [`client_ttl`](ExecutorProcessConfig::client_ttl) is 0, which switches the pool of shuffle
///   connections off: stages would open their own, as above.
///
/// # Examples
///
/// See [the crate](crate).
pub fn on_lane(
    mut config: ExecutorProcessConfig,
    handle: &Handle,
) -> Result<ExecutorProcessConfig> {
    if config.override_execution_engine.is_some() {
        return Err(BallistaError::Configuration(
            "override_execution_engine is set: a shuffle reader that such an engine lets connect \
             by itself panics on a lane, Ballista takes that for the reader's end, and rows are \
             lost. Leave it unset"
                .to_owned(),
        ));
    }
    if config.client_ttl == 0 {
        return Err(BallistaError::Configuration(
            "client_ttl is 0, which switches the pool of shuffle connections off, and on a \
             lane they have to come from one: set it to 1 (second) or more"
                .to_owned(),
        ));
    }
    let pool = IoClientPool::new(Duration::from_secs(config.client_ttl), handle);
    let engine = LaneEngine::new(pool, handle);
    config.override_execution_engine = Some(Arc::new(engine));
    Ok(config)
}
