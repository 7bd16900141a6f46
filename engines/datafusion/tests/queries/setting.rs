//! A table that keeps a query busy, and functions that see where it runs.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::exec_err;
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use twolane::{Builder, Handle};

use crate::support::wait::wait_until;
use crate::support::{Lanes, lanes_with, thread_name};

const ROWS: i64 = 200_000;
const BATCH: i64 = 4_096;

/// Groups and joins all rows with all tasks that DataFusion spawns for that.
pub const GROUPS: &str = "select b.n % 1000 as k, count(*), sum(threads(a.n)) \
    from numbers a join numbers b on a.n = b.n group by k order by k";

/// Takes an hour.
pub const LONG: &str = "select v % 1000 as k, sum(threads(v)) \
    from generate_series(1, 100000000000) t(v) group by k";

pub type Names = Arc<Mutex<BTreeSet<String>>>;

/// A function of one number.
pub fn function(
    name: &str,
    volatility: Volatility,
    f: impl Fn(&[ColumnarValue]) -> Result<ColumnarValue> + Send + Sync + 'static,
) -> ScalarUDF {
    let types = (vec![DataType::Int64], DataType::Int64);
    create_udf(name, types.0, types.1, volatility, Arc::new(f))
}

/// A table `numbers`, a function `threads` that adds the thread's name to `names`, one that panics,
/// `broken`, and one that fails.
fn context(partitions: usize, names: &Names) -> SessionContext {
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
    let threads = function("threads", Volatility::Volatile, move |values| {
        names.lock().unwrap().insert(thread_name());
        Ok(values[0].clone())
    });
    let broken = function("broken", Volatility::Volatile, |_| {
        panic!("a broken function")
    });
    let failing = function("failing", Volatility::Volatile, |_| {
        exec_err!("no such luck")
    });
    for function in [threads, broken, failing] {
        context.register_udf(function);
    }
    context
}

/// Queries of that context, on lanes.
pub struct Site {
    pub lanes: Lanes,
    pub cpu: Handle,
    pub context: SessionContext,
    pub names: Names,
    /// How many the I/O runtime had before any query.
    tasks: usize,
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
    for &partitions in partitions {
        println!("{partitions} partitions");
        let site = Site::new(partitions, &set);
        site.lanes.io.block_on(test(&site));
    }
}

impl Site {
    pub fn new(partitions: usize, set: impl FnOnce(Builder) -> Builder) -> Self {
        let lanes = lanes_with(2, set);
        let names = Names::default();
        Self {
            cpu: lanes.cpu.handle().clone(),
            context: context(partitions, &names),
            names,
            tasks: lanes.io.metrics().num_alive_tasks(),
            lanes,
        }
    }

    pub async fn frame(&self, sql: &str) -> DataFrame {
        self.context.sql(sql).await.unwrap()
    }

    /// Waits until a query has called `threads`.
    pub fn until_it_computes(&self) {
        wait_until(|| !self.names.lock().unwrap().is_empty());
    }

    /// All calls of `threads` since the last time, of which there are some, were on these threads.
    #[track_caller]
    pub fn assert_computed_on(&self, prefix: &str) {
        let names = std::mem::take(&mut *self.names.lock().unwrap());
        let are = names.iter().all(|name| name.starts_with(prefix));
        assert!(are && !names.is_empty(), "{names:?}");
    }

    /// Waits until nothing is left of any query: no job, no task of the I/O runtime, and none that
    /// holds memory.
    pub fn until_quiet(&self) {
        wait_until(|| {
            let jobs = self.cpu.metrics();
            jobs.queued + jobs.running + jobs.suspended == 0
        });
        wait_until(|| self.lanes.io.metrics().num_alive_tasks() <= self.tasks);
        wait_until(|| self.context.runtime_env().memory_pool.reserved() == 0);
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
