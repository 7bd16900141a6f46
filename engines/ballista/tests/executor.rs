//! A scheduler and an executor of Ballista in this process, the executor with a lane.

#[path = "../../../crates/core/tests/support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, mpsc};

use arrow_flight::flight_service_server::FlightServiceServer;
use ballista::prelude::{SessionConfigExt, SessionContextExt};
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::BallistaError;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_executor::ArrowFlightServerProvider;
use ballista_executor::execution_engine::DefaultExecutionEngine;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_executor::flight_service::BallistaFlightService;
use ballista_scheduler::standalone::new_standalone_scheduler_from_state;
use datafusion::arrow::array::{Int64Array, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::exec_err;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use support::{Lanes, lanes};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tonic::transport::server::{Server, TcpIncoming};
use twolane::Handle;
use twolane_ballista::on_lane;

const ROWS: i64 = 100_000;

/// Two stages, with a shuffle in between.
const GROUPS: &str = "select threads(n % 100) as k, count(*) from numbers group by k";

type Names = Arc<Mutex<BTreeSet<String>>>;
type Values<'a> = &'a [ColumnarValue];

fn function(
    name: &str,
    f: impl Fn(Values<'_>) -> Result<ColumnarValue> + Send + Sync + 'static,
) -> ScalarUDF {
    let types = (vec![DataType::Int64], DataType::Int64);
    create_udf(name, types.0, types.1, Volatility::Volatile, Arc::new(f))
}

/// Adds the thread's name to `names`.
fn threads(names: &Names) -> ScalarUDF {
    let names = names.clone();
    function("threads", move |values| {
        names.lock().unwrap().insert(support::thread_name());
        Ok(values[0].clone())
    })
}

struct Cluster {
    context: SessionContext,
    executor: JoinHandle<ballista_core::error::Result<()>>,
    _folder: TempDir,
}

async fn cluster(handle: &Handle, known: ScalarUDF) -> Cluster {
    cluster_with(handle, known, SessionConfig::new_with_ballista()).await
}

/// Starts it on the current runtime, whose end is its end.
async fn cluster_with(handle: &Handle, known: ScalarUDF, config: SessionConfig) -> Cluster {
    let folder = tempfile::tempdir().unwrap();
    let state = SessionStateBuilder::new()
        .with_config(config.with_target_partitions(2))
        .with_default_features()
        .build();
    let planner = SessionContext::new_with_state(state.clone());
    planner.register_udf(known.clone());
    let planner = planner.state();
    let scheduler = new_standalone_scheduler_from_state(&planner).await.unwrap();

    let mut registry = BallistaFunctionRegistry::default();
    let name = known.name().to_owned();
    registry.scalar_functions.insert(name, known.clone().into());
    let flight = TcpListener::bind("127.0.0.1:0").unwrap();
    let work = folder.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let config = ExecutorProcessConfig {
        external_host: Some("127.0.0.1".to_owned()),
        port: flight.local_addr().unwrap().port(),
        scheduler_host: "127.0.0.1".to_owned(),
        scheduler_port: scheduler.port(),
        vcores: 2,
        // As the scheduler has it. An executor that polls binds no port but that of its Flight
        // service.
        task_scheduling_policy: TaskSchedulingPolicy::PullStaged,
        work_dir: Some(work.display().to_string()),
        override_function_registry: Some(Arc::new(registry)),
        override_arrow_flight_service: Some(flight_on(flight)),
        ..Default::default()
    };
    let config = on_lane(config, handle).unwrap();
    let executor = tokio::spawn(start_executor_process(Arc::new(config)));

    let path = folder.path().join("numbers").display().to_string();
    write(&path).await.unwrap();
    let url = format!("df://{scheduler}");
    let context = SessionContext::remote_with_state(&url, state).await;
    let context = context.unwrap();
    context.register_udf(known);
    let read = context.register_parquet("numbers", path, ParquetReadOptions::default());
    read.await.unwrap();
    Cluster {
        context,
        executor,
        _folder: folder,
    }
}

/// Ballista's own service, on a port that no other test can take in between.
fn flight_on(listener: TcpListener) -> Arc<ArrowFlightServerProvider> {
    listener.set_nonblocking(true).unwrap();
    Arc::new(move |folder, _, mut shutdown, _| {
        let listener = listener.try_clone().unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let service = FlightServiceServer::new(BallistaFlightService::new(folder));
        tokio::spawn(async move {
            let served = Server::builder()
                .add_service(service)
                .serve_with_incoming_shutdown(TcpIncoming::from(listener), shutdown.recv());
            // Ballista logs it, and the executor then ends without an error.
            let served = served.await;
            Ok(served.inspect_err(|error| eprintln!("Flight: {error:?}"))?)
        })
    })
}

async fn write(path: &str) -> Result<()> {
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    let numbers: Int64Array = (0..ROWS).collect();
    let batch = RecordBatch::try_from_iter([("n", Arc::new(numbers) as _)])?;
    let numbers = context.read_batch(batch)?;
    let options = DataFrameWriteOptions::new();
    numbers.write_parquet(path, options, None).await?;
    Ok(())
}

/// The number of rows. An executor that ended would leave the query waiting.
async fn query(cluster: &mut Cluster, sql: &str) -> Result<usize> {
    let Cluster {
        context, executor, ..
    } = cluster;
    let batches = async { context.sql(sql).await?.collect().await };
    let batches = tokio::select! {
        batches = batches => batches?,
        ended = executor => panic!("the executor ended: {ended:?}"),
    };
    Ok(batches.iter().map(RecordBatch::num_rows).sum())
}

/// Also those whose shuffle needs connections: on the lane is no I/O driver, so one that a stage
/// opened itself would be a panic in a task of Ballista's, and fewer rows.
#[test]
fn stages_compute_on_the_lane_and_open_no_connections_there() {
    for remote in [false, true] {
        let Lanes { cpu, io } = lanes(2);
        let names = Names::default();
        let config = SessionConfig::new_with_ballista();
        let config = config.with_ballista_shuffle_reader_force_remote_read(remote);
        io.block_on(async {
            let mut cluster = cluster_with(cpu.handle(), threads(&names), config).await;
            assert_eq!(query(&mut cluster, GROUPS).await.unwrap(), 100);
        });
        let names = names.lock().unwrap();
        let are_the_lanes = names.iter().all(|name| name.starts_with("cpu-"));
        assert!(are_the_lanes && !names.is_empty(), "{names:?}");
        let jobs = cpu.handle().metrics();
        assert!(jobs.completed >= 2, "{jobs:?}");
    }
}

#[test]
fn an_error_of_a_stage_reaches_the_client() {
    let Lanes { cpu, io } = lanes(2);
    io.block_on(async {
        let failing = function("failing", |_| exec_err!("no such luck"));
        let mut cluster = cluster(cpu.handle(), failing).await;
        let failed = query(&mut cluster, "select failing(n) from numbers").await;
        let error = failed.unwrap_err();
        assert!(error.to_string().contains("no such luck"), "{error}");
        let counted = query(
            &mut cluster,
            "select n % 100, count(*) from numbers group by 1",
        );
        assert_eq!(counted.await.unwrap(), 100);
    });
}

/// The client learns why, and needs not wait for what still computes.
#[test]
fn a_shutdown_of_the_lane_fails_the_query() {
    let Lanes { cpu, io } = lanes(2);
    // Dropped, at the end of the test, it lets go of the lane's threads.
    let (let_go, wait) = mpsc::channel::<()>();
    let (begun, wait) = (Arc::new(Semaphore::new(0)), Mutex::new(wait));
    let begins = begun.clone();
    let waiting = function("waiting", move |values| {
        begins.add_permits(1);
        let _ = wait.lock().unwrap().recv();
        Ok(values[0].clone())
    });
    io.block_on(async {
        let mut cluster = cluster(cpu.handle(), waiting).await;
        let sql = "select waiting(n) % 100 as k, count(*) from numbers group by k";
        let shutdown = async {
            begun.acquire().await.unwrap().forget();
            cpu.shutdown_background();
        };
        let (ended, ()) = tokio::join!(query(&mut cluster, sql), shutdown);
        let error = ended.unwrap_err();
        assert!(error.to_string().contains("ShutDown"), "{error}");
    });
    drop(let_go);
}

#[test]
fn what_would_lose_rows_is_refused() {
    let Lanes { cpu, io: _io } = lanes(1);
    let plain = ExecutorProcessConfig::default;
    let without_a_pool = ExecutorProcessConfig {
        client_ttl: 0,
        ..plain()
    };
    // Such as Ballista's own with another pool: its readers would panic, and rows be lost.
    let with_an_engine = ExecutorProcessConfig {
        override_execution_engine: Some(Arc::new(DefaultExecutionEngine::new())),
        ..plain()
    };
    // It has an engine, too.
    let twice = on_lane(plain(), cpu.handle()).unwrap();
    let no_pool = ["client_ttl is 0", "set it to 1 (second) or more"];
    let engine = ["override_execution_engine is set", "rows are lost"];
    for (config, why) in [
        (without_a_pool, no_pool),
        (with_an_engine, engine),
        (twice, engine),
    ] {
        let refused = on_lane(config, cpu.handle()).err().unwrap();
        let is_of_the_setting = matches!(refused, BallistaError::Configuration(_));
        assert!(is_of_the_setting, "{refused:?}");
        let refused = refused.to_string();
        assert!(why.iter().all(|why| refused.contains(why)), "{refused}");
    }
}
