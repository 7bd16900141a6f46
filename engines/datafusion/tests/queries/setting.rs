//! A table that keeps a query busy, and functions that see where it runs.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::exec_err;
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use twolane::{Builder, Handle};

use crate::support::{Lanes, lanes_with, thread_name, time_limit};

const ROWS: i64 = 200_000;
const BATCH: i64 = 4_096;

/// Groups and joins all rows with all tasks that DataFusion spawns for that.
pub const GROUPS: &str = "select b.n % 1000 as k, count(*), sum(threads(a.n)) \
    from numbers a join numbers b on a.n = b.n group by k order by k";

/// Takes an hour.
pub const LONG: &str = "select v % 1000 as k, sum(threads(v)) \
    from generate_series(1, 100000000000) t(v) group by k";

pub type Names = Arc<Mutex<BTreeSet<String>>>;

/// A table `numbers`, a function `threads` that adds the thread's name to `names`, and one
/// that panics, `broken`.
pub fn context(partitions: usize, names: &Names) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(partitions);
    let context = SessionContext::new_with_config(config);
    let batch = |from: i64| {
        let numbers: Int64Array = (from..(from + BATCH).min(ROWS)).collect();
        RecordBatch::try_from_iter([("n", Arc::new(numbers) as ArrayRef)]).unwrap()
    };
    let parts = (0..partitions as i64).map(|part| {
        let starts = (0..ROWS).step_by(BATCH as usize);
        let own = starts.filter(|from| from / BATCH % partitions as i64 == part);
        own.map(batch).collect()
    });
    let parts: Vec<Vec<RecordBatch>> = parts.collect();
    let table = MemTable::try_new(parts[0][0].schema(), parts).unwrap();
    context.register_table("numbers", Arc::new(table)).unwrap();

    let names = names.clone();
    let see = move |values: &[ColumnarValue]| {
        names.lock().unwrap().insert(thread_name());
        Ok(values[0].clone())
    };
    let panics = |_: &[ColumnarValue]| -> Result<ColumnarValue> { panic!("a broken function") };
    let fails = |_: &[ColumnarValue]| -> Result<ColumnarValue> { exec_err!("no such luck") };
    let udf = |name, f| {
        let types = (vec![DataType::Int64], DataType::Int64);
        create_udf(name, types.0, types.1, Volatility::Volatile, f)
    };
    context.register_udf(udf("threads", Arc::new(see)));
    context.register_udf(udf("broken", Arc::new(panics)));
    context.register_udf(udf("failing", Arc::new(fails)));
    context
}

/// Queries of that context, on lanes.
pub struct Site {
    pub lanes: Lanes,
    pub cpu: Handle,
    pub context: SessionContext,
    pub names: Names,
}

/// Runs the test with each number of partitions, on the I/O runtime of its lanes.
pub fn each(partitions: &[usize], test: impl AsyncFn(&Site)) {
    each_with(partitions, |lane| lane, test);
}

pub fn each_with(
    partitions: &[usize],
    set: impl Fn(Builder) -> Builder,
    test: impl AsyncFn(&Site),
) {
    let _limit = time_limit();
    for &partitions in partitions {
        println!("{partitions} partitions");
        let lanes = lanes_with(2, &set);
        let names = Names::default();
        let site = Site {
            cpu: lanes.cpu.handle().clone(),
            context: context(partitions, &names),
            names,
            lanes,
        };
        site.lanes.io.block_on(test(&site));
    }
}

impl Site {
    pub async fn frame(&self, sql: &str) -> DataFrame {
        self.context.sql(sql).await.unwrap()
    }

    /// Waits until a query has called `threads`.
    pub async fn until_it_computes(&self) {
        until(|| !self.names.lock().unwrap().is_empty()).await;
    }

    /// All calls of `threads` since the last time, of which there are some, were on these threads.
    #[track_caller]
    pub fn assert_computed_on(&self, prefix: &str) {
        let names = std::mem::take(&mut *self.names.lock().unwrap());
        let are = names.iter().all(|name| name.starts_with(prefix));
        assert!(are && !names.is_empty(), "{names:?}");
    }

    /// Waits until nothing is left of any query: no job, no task of the I/O runtime but so many,
    /// and none that holds memory.
    pub async fn until_quiet(&self, tasks: usize) {
        until(|| {
            let jobs = self.cpu.metrics();
            jobs.queued + jobs.running + jobs.suspended == 0
        })
        .await;
        until(|| self.lanes.io.metrics().num_alive_tasks() <= tasks).await;
        until(|| self.context.runtime_env().memory_pool.reserved() == 0).await;
    }
}

/// How many rows these batches have.
pub fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

/// The error of the lane in a query's error.
pub fn lane_error<E: std::error::Error + 'static>(error: &DataFusionError) -> Option<&E> {
    match error {
        DataFusionError::External(error) => error.downcast_ref(),
        _ => None,
    }
}

/// Waits, by Tokio's clock, until `is_so`. The test's time limit ends it otherwise.
pub async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}
