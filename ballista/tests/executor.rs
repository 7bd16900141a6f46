//! A scheduler and an executor of Ballista in this process, the executor with a lane.

#[path = "../../tests/support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ballista::prelude::{SessionConfigExt, SessionContextExt};
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::BallistaError;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_executor::execution_engine::{DefaultExecutionEngine, ExecutionEngine};
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::standalone::new_standalone_scheduler_from_state;
use datafusion::arrow::array::{Int64Array, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::exec_err;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use support::{BOTH, Lanes, lanes, time_limit};
use tempfile::TempDir;
use twolane::{Backend, Handle};
use twolane_ballista::on_lane;

const ROWS: i64 = 100_000;

/// Two stages, with a shuffle in between.
const GROUPS: &str = "select threads(n % 100) as k, count(*) from numbers group by k";

/// Takes an hour.
const LONG: &str = "select threads(a.n + b.n) % 100 as k, count(*) \
    from numbers a join numbers b on a.n + b.n > 0 group by k";

type Names = Arc<Mutex<BTreeSet<String>>>;

/// One that adds the thread's name to `names`, and one that fails.
fn functions(names: &Names) -> [ScalarUDF; 2] {
    let names = names.clone();
    let see = move |values: &[ColumnarValue]| {
        names.lock().unwrap().insert(support::thread_name());
        Ok(values[0].clone())
    };
    let fails = |_: &[ColumnarValue]| -> Result<ColumnarValue> { exec_err!("no such luck") };
    let udf = |name, f| {
        let types = (vec![DataType::Int64], DataType::Int64);
        create_udf(name, types.0, types.1, Volatility::Volatile, f)
    };
    [
        udf("threads", Arc::new(see)),
        udf("failing", Arc::new(fails)),
    ]
}

struct Cluster {
    context: SessionContext,
    _folder: TempDir,
}

async fn cluster(handle: &Handle, names: &Names) -> Cluster {
    cluster_with(handle, names, SessionConfig::new_with_ballista(), None).await
}

/// Starts it on the current runtime, whose end is its end.
async fn cluster_with(
    handle: &Handle,
    names: &Names,
    config: SessionConfig,
    engine: Option<Arc<dyn ExecutionEngine>>,
) -> Cluster {
    let folder = tempfile::tempdir().unwrap();
    let state = SessionStateBuilder::new()
        .with_config(config.with_target_partitions(2))
        .with_default_features()
        .build();
    let planner = SessionContext::new_with_state(state.clone());
    let mut registry = BallistaFunctionRegistry::default();
    for function in functions(names) {
        planner.register_udf(function.clone());
        let name = function.name().to_owned();
        registry.scalar_functions.insert(name, Arc::new(function));
    }
    let planner = planner.state();
    let scheduler = new_standalone_scheduler_from_state(&planner).await.unwrap();

    let free = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [port, grpc_port] = free.map(|listener| listener.local_addr().unwrap().port());
    let work = folder.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let config = ExecutorProcessConfig {
        external_host: Some("127.0.0.1".to_owned()),
        port,
        grpc_port,
        scheduler_host: "127.0.0.1".to_owned(),
        scheduler_port: scheduler.port(),
        vcores: 2,
        // As the scheduler has it.
        task_scheduling_policy: TaskSchedulingPolicy::PullStaged,
        work_dir: Some(work.display().to_string()),
        override_function_registry: Some(Arc::new(registry)),
        override_execution_engine: engine,
        ..Default::default()
    };
    let config = on_lane(config, handle).unwrap();
    tokio::spawn(start_executor_process(Arc::new(config)));

    let path = folder.path().join("numbers").display().to_string();
    write(&path).await.unwrap();
    let url = format!("df://{scheduler}");
    let context = SessionContext::remote_with_state(&url, state).await;
    let context = context.unwrap();
    for function in functions(names) {
        context.register_udf(function);
    }
    let read = context.register_parquet("numbers", path, ParquetReadOptions::default());
    read.await.unwrap();
    Cluster {
        context,
        _folder: folder,
    }
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

async fn query(cluster: &Cluster, sql: &str) -> Result<usize> {
    let batches = cluster.context.sql(sql).await?.collect().await?;
    Ok(batches.iter().map(RecordBatch::num_rows).sum())
}

#[test]
fn stages_compute_on_the_lane() {
    let _limit = time_limit();
    let Lanes { cpu, io } = lanes(Backend::Runtime, 2);
    let names = Names::default();
    io.block_on(async {
        let cluster = cluster(&cpu.handle(), &names).await;
        assert_eq!(query(&cluster, GROUPS).await.unwrap(), 100);
    });
    let names = names.lock().unwrap();
    let are_the_lanes = names.iter().all(|name| name.starts_with("cpu-"));
    assert!(are_the_lanes && !names.is_empty(), "{names:?}");
    assert!(cpu.metrics().completed >= 2, "{:?}", cpu.metrics());
}

/// On the lane is no I/O driver, so a connection that a stage opened itself would be a panic in a
/// task of Ballista's, and fewer rows.
#[test]
fn shuffle_connections_are_not_opened_on_the_lane() {
    let _limit = time_limit();
    let Lanes { cpu, io } = lanes(Backend::Runtime, 2);
    let config =
        SessionConfig::new_with_ballista().with_ballista_shuffle_reader_force_remote_read(true);
    // An engine that has no pool, too.
    let engines: [Option<Arc<dyn ExecutionEngine>>; 2] =
        [None, Some(Arc::new(DefaultExecutionEngine::new()))];
    io.block_on(async {
        for engine in engines {
            let names = Names::default();
            let cluster = cluster_with(&cpu.handle(), &names, config.clone(), engine).await;
            assert_eq!(query(&cluster, GROUPS).await.unwrap(), 100);
        }
    });
}

#[test]
fn an_error_of_a_stage_reaches_the_client() {
    let _limit = time_limit();
    let Lanes { cpu, io } = lanes(Backend::Runtime, 2);
    io.block_on(async {
        let cluster = cluster(&cpu.handle(), &Names::default()).await;
        let failed = query(&cluster, "select failing(n) from numbers").await;
        let error = failed.unwrap_err();
        assert!(error.to_string().contains("no such luck"), "{error}");
        assert_eq!(query(&cluster, GROUPS).await.unwrap(), 100);
    });
}

/// The client learns why, and needs not wait.
#[test]
fn a_shutdown_of_the_lane_fails_the_query() {
    let _limit = time_limit();
    let Lanes { cpu, io } = lanes(Backend::Runtime, 2);
    let names = Names::default();
    io.block_on(async {
        let cluster = cluster(&cpu.handle(), &names).await;
        let long = query(&cluster, LONG);
        let shutdown = async {
            while names.lock().unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            cpu.shutdown_background();
        };
        let (ended, ()) = tokio::join!(long, shutdown);
        let error = ended.unwrap_err();
        assert!(error.to_string().contains("ShutDown"), "{error}");
    });
}

#[test]
fn what_cannot_work_is_refused_with_the_remedy() {
    let _limit = time_limit();
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let config = ExecutorProcessConfig {
            client_ttl: match backend {
                Backend::Runtime => 0,
                _ => 30,
            },
            ..Default::default()
        };
        let refused = on_lane(config, &cpu.handle()).err().unwrap();
        assert!(
            matches!(refused, BallistaError::Configuration(_)),
            "{refused:?}"
        );
        let remedy = match backend {
            Backend::Runtime => "set it to 1 (second) or more",
            _ => "backend(Backend::Runtime)",
        };
        assert!(refused.to_string().contains(remedy), "{refused}");
    }
}
