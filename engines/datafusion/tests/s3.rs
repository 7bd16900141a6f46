//! Tables on a real S3 server: what queries leave behind that are dropped. A process of its own, for
//! its sockets.
#![cfg(target_os = "linux")]

#[path = "../../../crates/core/tests/support/mod.rs"]
mod support;

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::error::Result;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use futures::TryStreamExt;
use object_store::ClientOptions;
use object_store::aws::AmazonS3Builder;
use object_store::client::ReqwestConnector;
use support::lanes;
use support::wait::wait_until;
use twolane::Handle;
use twolane::io::IoConnector;
use twolane_datafusion::{collect_on, run_on, stream_on};
use twolane_s3::server::Server;

const URL: &str = "s3://twolane/numbers/";
const GROUPS: &str = "select b.value % 1000 as k, count(*), sum(a.value) \
    from numbers a join numbers b on a.value = b.value group by k order by k";

/// A context whose store sends its requests on the I/O lane.
fn context(server: &Server, handle: &Handle) -> SessionContext {
    let connector = IoConnector::new(ReqwestConnector::default(), handle);
    context_with(builder(server).with_http_connector(connector))
}

fn builder(server: &Server) -> AmazonS3Builder {
    let access = server.access();
    let settings = access.config().into_iter();
    let settings = settings.map(|(name, value)| (name.parse().expect("a setting"), value));
    settings.fold(AmazonS3Builder::new(), |builder, (key, value)| {
        builder.with_config(key, value)
    })
}

fn context_with(store: AmazonS3Builder) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(4);
    let context = SessionContext::new_with_config(config);
    let store = store.build().unwrap();
    let url = URL.parse().unwrap();
    context.register_object_store(&url, Arc::new(store));
    context
}

/// 300,000 numbers in files of many row groups, so that a query sends many requests.
async fn write(context: SessionContext) -> Result<()> {
    let set = "set datafusion.execution.parquet.max_row_group_size = 5000";
    context.sql(set).await?.collect().await?;
    let numbers = context.sql("select value from generate_series(1, 300000)");
    let options = DataFrameWriteOptions::new();
    numbers.await?.write_parquet(URL, options, None).await?;
    read(context).await
}

async fn read(context: SessionContext) -> Result<()> {
    let options = ParquetReadOptions::default();
    context.register_parquet("numbers", URL, options).await
}

/// The connections of this process to the server.
fn connections(server: &Server) -> usize {
    const ESTABLISHED: &str = "01";
    let port = format!(":{:04X}", server.address().port());
    let sockets = fs::read_to_string("/proc/self/net/tcp").unwrap();
    let lines = sockets.lines().map(|line| line.split_whitespace());
    let is_ours = |mut fields: std::str::SplitWhitespace<'_>| {
        let peer = fields.nth(2).is_some_and(|peer| peer.ends_with(&port));
        peer && fields.next() == Some(ESTABLISHED)
    };
    lines.filter(|fields| is_ours(fields.clone())).count()
}

/// At a thousand moments of its life.
#[test]
fn a_thousand_queries_that_are_dropped_leave_no_memory_and_no_connection() {
    let (cpu, lanes) = lanes(2).and_handle();
    let server = Server::start(Duration::from_millis(1)).unwrap();
    let context = context(&server, &cpu);
    lanes.io.block_on(async {
        run_on(&cpu, write(context.clone())).await.unwrap();
        let pool = context.runtime_env().memory_pool.clone();
        for n in 0..1_000_u64 {
            let query = collect_on(&cpu, context.sql(GROUPS).await.unwrap());
            let moment = Duration::from_micros(n * n % 50_021);
            if let Ok(result) = tokio::time::timeout(moment, query).await {
                result.unwrap();
            }
        }
        wait_until(|| pool.reserved() == 0);
        let jobs = cpu.metrics();
        assert!(jobs.cancelled > 0, "{jobs:?}");
        assert_eq!(jobs.panicked, 0, "{jobs:?}");
        wait_until(|| {
            let jobs = cpu.metrics();
            jobs.queued + jobs.running + jobs.suspended == 0
        });
        let rows = collect_on(&cpu, context.sql(GROUPS).await.unwrap()).await;
        let rows: usize = rows.unwrap().iter().map(|batch| batch.num_rows()).sum();
        assert_eq!(rows, 1_000);
    });
    // A query that is left behind holds the environment with the store, and its client holds
    // connections.
    let environment = Arc::downgrade(&context.runtime_env());
    drop(context);
    wait_until(|| environment.strong_count() == 0);
    wait_until(|| connections(&server) == 0);
}

/// Its tasks panic, since they have no I/O driver. The query must not pass for one without rows.
#[test]
fn a_store_that_connects_on_the_lane_is_an_error() {
    let (cpu, lanes) = lanes(2).and_handle();
    let server = Server::start(Duration::ZERO).unwrap();
    lanes.io.block_on(async {
        let written = run_on(&cpu, write(context(&server, &cpu)));
        written.await.unwrap();
        // Each request opens a connection.
        let options = ClientOptions::new()
            .with_allow_http(true)
            .with_pool_max_idle_per_host(0);
        let context = context_with(builder(&server).with_client_options(options));
        read(context.clone()).await.unwrap();
        for sql in [
            GROUPS,
            "select value from numbers",
            "select count(*) from numbers a, numbers b where a.value = b.value",
        ] {
            let frame = context.sql(sql).await.unwrap();
            collect_on(&cpu, frame.clone()).await.unwrap_err();
            let stream = stream_on(&cpu, frame, 1 << 20).await;
            let rows = async { stream?.try_collect::<Vec<_>>().await };
            rows.await.unwrap_err();
        }
    });
}
