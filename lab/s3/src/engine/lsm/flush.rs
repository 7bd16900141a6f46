//! A memtable to the store.

use object_store_0_14::{ObjectStore, ObjectStoreExt, path::Path};

use super::super::cpu::Cpu;
use super::Error;
use super::file::{FAST, File, encode};
use super::row::Row;
use super::steps::{Step, Steps};

/// About a quarter of a MiB, and some 6 ms of sorting and encoding.
pub const MEMTABLE_ROWS: usize = 31_200;

pub async fn flush(
    store: &dyn ObjectStore,
    cpu: Cpu,
    memtable: Vec<Row>,
    path: Path,
    steps: &mut Steps,
) -> Result<File, Error> {
    let sorted = move || {
        let mut rows = memtable;
        rows.sort_unstable_by_key(Row::key);
        encode(&rows, FAST)
    };
    let (bytes, blocks) = steps.time(Step::Compute, cpu.run(sorted)).await;
    steps
        .time(Step::Put, store.put(&path, bytes.into()))
        .await?;
    Ok(File { path, blocks })
}
