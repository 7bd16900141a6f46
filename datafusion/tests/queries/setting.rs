//! A table that keeps a query busy, and functions that see where it runs.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::exec_err;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::support::thread_name;

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

/// Waits, by Tokio's clock, until `is_so`. The test's time limit ends it otherwise.
pub async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}
