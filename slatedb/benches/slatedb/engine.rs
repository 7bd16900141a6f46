//! slatedb in each of two versions: the same code, for crates whose types differ.

use std::sync::Arc;
use std::time::Instant;

use object_store::ObjectStore;
use tokio::runtime::Handle;

use crate::rows::Rows;

/// Where its tasks run.
#[derive(Clone)]
pub struct Runtimes {
    /// On which the database is opened: there it writes its log and its L0 files.
    pub opened_on: Handle,
    /// Compaction and garbage collection.
    pub compaction: Handle,
}

pub struct Written {
    pub seconds: f64,
}

macro_rules! engine {
    ($name:ident, $slatedb:ident, $write:expr) => {
        pub mod $name {
            use super::*;
            use $slatedb::{CompactorBuilder, Db, WriteBatch};

            type Error = Box<dyn std::error::Error + Send + Sync>;

            pub async fn open(
                store: Arc<dyn ObjectStore>,
                runtimes: &Runtimes,
            ) -> Result<Db, Error> {
                // A turn is a process: it finds no rows of another one.
                let path = format!("db-{}", std::process::id());
                let compactor = CompactorBuilder::new(path.clone(), store.clone())
                    .with_runtime(runtimes.compaction.clone());
                let builder = Db::builder(path, store)
                    .with_compactor_builder(compactor)
                    .with_gc_runtime(runtimes.compaction.clone());
                let open = async move { builder.build().await };
                Ok(runtimes.opened_on.spawn(open).await??)
            }

            /// Writes all rows, a batch after the other, and waits until they are stored.
            pub async fn write(db: &Db, rows: Rows) -> Result<Written, Error> {
                let began = Instant::now();
                for batch in rows.batches() {
                    let mut writes = WriteBatch::new();
                    for (key, value) in batch {
                        writes.put(key, value);
                    }
                    $write(db, writes).await?;
                }
                db.flush().await?;
                Ok(Written {
                    seconds: began.elapsed().as_secs_f64(),
                })
            }

            /// Reads all rows back, and closes the database.
            pub async fn check(db: &Db, rows: Rows) -> Result<(), Error> {
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
                Ok(db.close().await?)
            }
        }
    };
}

engine!(released, slatedb, |db: &Db, batch| {
    let db = db.clone();
    async move {
        let options = slatedb::config::WriteOptions {
            await_durable: false,
            ..Default::default()
        };
        db.write_with_options(batch, &options).await.map(drop)
    }
});
engine!(cured, slatedb_cured, |db: &Db, batch| {
    let db = db.clone();
    async move { db.write(batch).await.map(drop) }
});
