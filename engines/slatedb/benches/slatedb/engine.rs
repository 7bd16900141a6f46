//! slatedb in each of two versions: the same code, for crates whose types differ.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::ok;
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectStore;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::rows::Rows;

/// Where its tasks run.
#[derive(Clone)]
pub struct Runtimes {
    /// On which the database is opened: there it writes its log and its L0 files.
    pub opened_on: Handle,
    /// The task that takes writes. 0.15 has it where it is opened.
    pub writes: Handle,
    /// Compaction and garbage collection.
    pub compaction: Handle,
}

pub struct Written {
    /// Until all rows are in the log, and until they are compacted as well.
    pub seconds: f64,
    pub compacted_seconds: f64,
}

/// Tasks that write at the same time, as handlers of requests do.
const WRITERS: usize = 8;

/// How often the compactor looks for work. Its default, 5 s, is longer than the rows take.
const COMPACTS_EACH: Duration = Duration::from_millis(50);
/// The compactor's default: it starts at four L0 files.
const L0_FILES: usize = 4;

/// A turn is a process: it finds no rows of another one.
fn path() -> String {
    format!("db-{}", std::process::id())
}

macro_rules! engine {
    ($name:ident, $slatedb:ident, $set:expr, $write:expr) => {
        pub mod $name {
            use super::*;
            use $slatedb::config::{
                CompactionWorkerOptions, CompactorOptions, FlushOptions, FlushType, Settings,
            };
            use $slatedb::{CompactorBuilder, Db, WriteBatch};

            type Error = Box<dyn std::error::Error + Send + Sync>;

            pub async fn open(
                store: Arc<dyn ObjectStore>,
                runtimes: &Runtimes,
            ) -> Result<Db, Error> {
                let path = path();
                let options = CompactorOptions {
                    poll_interval: COMPACTS_EACH,
                    commit_compacted_interval: COMPACTS_EACH,
                    worker: Some(CompactionWorkerOptions {
                        compactions_poll_interval: COMPACTS_EACH,
                        ..Default::default()
                    }),
                    ..Default::default()
                };
                let compactor = CompactorBuilder::new(path.clone(), store.clone())
                    .with_options(options)
                    .with_runtime(runtimes.compaction.clone());
                let settings = Settings {
                    manifest_poll_interval: COMPACTS_EACH,
                    ..Default::default()
                };
                let set = $set;
                let builder = Db::builder(path, store)
                    .with_settings(settings)
                    .with_compactor_builder(compactor)
                    .with_gc_runtime(runtimes.compaction.clone());
                let builder = set(builder, runtimes);
                let open = async move { builder.build().await };
                Ok(runtimes.opened_on.spawn(open).await??)
            }

            /// Writes all rows, and waits until they are stored and compacted.
            pub async fn write(db: &Db, rows: Rows) -> Result<Written, Error> {
                let began = Instant::now();
                let mut writers = JoinSet::new();
                for writer in 0..WRITERS {
                    let db = db.clone();
                    writers.spawn(async move {
                        for batch in rows.batches().skip(writer).step_by(WRITERS) {
                            let mut writes = WriteBatch::new();
                            for row in batch {
                                let (key, value) = rows.row(row);
                                writes.put(key, value);
                            }
                            $write(&db, writes).await?;
                        }
                        Ok::<_, $slatedb::Error>(())
                    });
                }
                while let Some(written) = writers.join_next().await {
                    written??;
                }
                db.flush().await?;
                let seconds = began.elapsed().as_secs_f64();
                let flush_type = FlushType::MemTable;
                db.flush_with_options(FlushOptions { flush_type }).await?;
                while db.manifest().l0().len() >= L0_FILES {
                    tokio::time::sleep(COMPACTS_EACH / 10).await;
                }
                Ok(Written {
                    seconds,
                    compacted_seconds: began.elapsed().as_secs_f64(),
                })
            }

            /// Reads all rows back, and removes the database.
            pub async fn check(db: &Db, rows: Rows, store: &dyn ObjectStore) -> Result<(), Error> {
                let mut found = db.scan::<std::ops::RangeFull>(..).await?;
                let mut n = 0;
                while let Some(row) = found.next().await? {
                    if row.value != rows.value_of(&row.key) {
                        return Err(format!("the value of {:?} is another", row.key).into());
                    }
                    n += 1;
                }
                if n != rows.n {
                    return Err(format!("{n} rows of {}", rows.n).into());
                }
                db.close().await?;
                // Its server keeps all in memory, and the next turn has a database of its own.
                let files = store.list(Some(&path().into()));
                let files = files.map_ok(|file| file.location).boxed();
                store.delete_stream(files).try_for_each(|_| ok(())).await?;
                Ok(())
            }
        }
    };
}

engine!(
    released,
    slatedb_before,
    |builder: slatedb_before::DbBuilder<String>, _: &Runtimes| builder,
    |db: &Db, batch| {
        let db = db.clone();
        async move {
            let options = slatedb_before::config::WriteOptions {
                await_durable: false,
                ..Default::default()
            };
            db.write_with_options(batch, &options).await.map(drop)
        }
    }
);
engine!(
    cured,
    slatedb,
    |builder: slatedb::DbBuilder<String>, runtimes: &Runtimes| {
        builder.with_write_runtime(runtimes.writes.clone())
    },
    |db: &Db, batch| {
        let db = db.clone();
        async move { db.write(batch).await.map(drop) }
    }
);
