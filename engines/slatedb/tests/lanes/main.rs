//! slatedb with a lane: on which threads it computes. Seen from outside, by the object store that
//! it calls.

mod calls;
#[path = "../../../../crates/core/tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use calls::Calls;
use object_store::ObjectStore;
use object_store::client::ReqwestConnector;
use support::{Lanes, lanes};
use tokio::runtime::Handle;
use twolane::io::IoConnector;
use twolane_s3::engine::contender::store_builder;
use twolane_s3::seen::Seen;
use twolane_s3::server::Server;

const ROWS: usize = 200;
/// So many L0 files that slatedb compacts them by itself.
const FILES: usize = 12;

struct Site {
    lanes: Lanes,
    store: Arc<dyn ObjectStore>,
    calls: Calls,
    _server: Server,
}

fn site() -> Site {
    let lanes = lanes(2);
    let server = Server::start(Duration::ZERO).unwrap();
    let calls = Calls::default();
    // Its requests run on the I/O lane, wherever it is called: a test in `s3` shows it.
    let connector = IoConnector::new(ReqwestConnector::default(), lanes.cpu.handle());
    let store = store_builder(&server.access()).with_http_connector(connector);
    let (store, by) = (store.build().unwrap(), calls.clone());
    Site {
        lanes,
        store: Arc::new(Seen { store, by }),
        calls,
        _server: server,
    }
}

impl Site {
    fn lane(&self) -> Handle {
        self.lanes.cpu.handle().tokio_handle().unwrap()
    }
}

/// The tests of one version: the same code, for crates whose types differ.
macro_rules! version {
    ($name:ident, $slatedb:ident) => {
        mod $name {
            use $slatedb::config::{CompactorOptions, FlushOptions, FlushType};
            use $slatedb::{CompactorBuilder, Db, WriteBatch};

            use super::*;

            async fn open(site: &Site, opened_on: &Handle, compaction: Handle) -> Db {
                let options = CompactorOptions {
                    poll_interval: Duration::from_millis(50),
                    ..Default::default()
                };
                let compactor =
                    CompactorBuilder::new("db", site.store.clone()).with_options(options);
                let open = Db::builder("db", site.store.clone())
                    .with_compactor_builder(compactor.with_runtime(compaction.clone()))
                    .with_gc_runtime(compaction)
                    .build();
                opened_on.spawn(open).await.unwrap().unwrap()
            }

            /// Writes L0 files until a thread of the lane has written one: the result of a
            /// compaction, unless the database was opened there.
            async fn fill(site: &Site, db: &Db) {
                for file in 0..FILES {
                    let mut rows = WriteBatch::new();
                    for row in 0..ROWS {
                        rows.put(format!("{row:04}"), format!("{file}"));
                    }
                    db.write(rows).await.unwrap();
                    let flush_type = FlushType::MemTable;
                    db.flush_with_options(FlushOptions { flush_type })
                        .await
                        .unwrap();
                }
                site.calls.until_the_lane_writes("db/compacted").await;
            }

            async fn check(db: Db) {
                for row in 0..ROWS {
                    let value = db.get(format!("{row:04}")).await.unwrap().unwrap();
                    assert_eq!(value, (FILES - 1).to_string());
                }
                db.close().await.unwrap();
            }

            #[test]
            fn its_compactions_compute_on_the_lane_and_its_flushes_where_it_was_opened() {
                let site = site();
                site.lanes.io.block_on(async {
                    let io = Handle::current();
                    let db = open(&site, &io, site.lane()).await;
                    fill(&site, &db).await;
                    let logs = site.calls.threads("db/wal");
                    assert_eq!(logs.iter().collect::<Vec<_>>(), ["io"]);
                    assert!(site.calls.threads("db/compacted").contains("io"));
                    check(db).await;
                });
                assert!(site.lanes.cpu.shutdown().wait().is_empty());
            }

            #[test]
            fn all_of_it_computes_on_the_lane_if_it_is_opened_there() {
                let site = site();
                site.lanes.io.block_on(async {
                    let db = open(&site, &site.lane(), site.lane()).await;
                    assert!(site.lanes.cpu.handle().metrics().tokio_tasks > 0);
                    fill(&site, &db).await;
                    for part in ["db/wal", "db/compacted"] {
                        let writers = site.calls.writers(part);
                        assert!(!writers.is_empty(), "{part}");
                        assert!(
                            writers.iter().all(|thread| thread.starts_with("cpu-")),
                            "{writers:?}"
                        );
                    }
                    check(db).await;
                });
                assert!(site.lanes.cpu.shutdown().wait().is_empty());
            }
        }
    };
}

version!(cured, slatedb);
#[cfg(feature = "before_the_cure")]
version!(released, slatedb_before);
