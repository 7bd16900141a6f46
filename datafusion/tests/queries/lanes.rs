//! Where the parts of a query run.

use datafusion::error::DataFusionError;
use futures::{StreamExt, TryStreamExt};
use twolane::{Backend, Priority};
use twolane_datafusion::{collect_on, is_unavailable, run_on, stream_on};

use crate::setting::{GROUPS, Names, context};
use crate::support::{BOTH, lanes, lanes_with, time_limit};

fn assert_on_the_lane(names: &Names) {
    let names = names.lock().unwrap();
    assert!(!names.is_empty());
    assert!(
        names.iter().all(|name| name.starts_with("cpu-")),
        "{names:?}"
    );
}

#[test]
fn all_of_a_query_computes_on_the_lane() {
    let _limit = time_limit();
    for backend in BOTH {
        for partitions in [1, 4] {
            let lanes = lanes(backend, 2);
            let names = Names::default();
            let context = context(partitions, &names);
            let cpu = lanes.cpu.handle();
            let rows = lanes.io.block_on(async {
                let frame = context.sql(GROUPS).await.unwrap();
                collect_on(&cpu, frame).await.unwrap()
            });
            let rows: usize = rows.iter().map(|batch| batch.num_rows()).sum();
            assert_eq!(rows, 1_000);
            assert_on_the_lane(&names);
        }
    }
}

#[test]
fn a_stream_computes_on_the_lane() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 2);
        let names = Names::default();
        let context = context(2, &names);
        let cpu = lanes.cpu.handle();
        let rows = lanes.io.block_on(async {
            let frame = context.sql(GROUPS).await.unwrap();
            let schema = frame.schema().inner().clone();
            let stream = stream_on(&cpu, frame, 1 << 20).await.unwrap();
            assert_eq!(stream.schema().fields().len(), schema.fields().len());
            let batches: Vec<_> = stream.try_collect().await.unwrap();
            batches.iter().map(|batch| batch.num_rows()).sum::<usize>()
        });
        assert_eq!(rows, 1_000);
        assert_on_the_lane(&names);
    }
}

/// The tasks of a query have its priority, and share its permit.
#[test]
fn tasks_belong_to_their_query() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes_with(backend, 2, |builder| builder.queue_limit(Priority::Low, 1));
        let names = Names::default();
        let context = context(4, &names);
        let low = lanes.cpu.handle().with_priority(Priority::Low);
        let query = async move { context.sql(GROUPS).await?.collect().await };
        lanes.io.block_on(run_on(&low, query)).unwrap();
        let names = names.lock().unwrap();
        let are_low = names.iter().all(|name| name.starts_with("cpu-low-"));
        assert!(are_low && !names.is_empty(), "{names:?}");
        let jobs = low.metrics().completed;
        match backend {
            Backend::Runtime => assert_eq!(jobs, 1),
            _ => assert!(jobs > 4, "{jobs} jobs"),
        }
        assert_eq!(lanes.cpu.handle().metrics().completed, 0);
    }
}

#[test]
fn errors_say_what_happened() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 2);
        let context = context(2, &Names::default());
        let cpu = lanes.cpu.handle();
        lanes.io.block_on(async {
            let frame = async |sql: &str| context.sql(sql).await.unwrap();
            let failing = frame("select failing(n) from numbers").await;
            let failed = collect_on(&cpu, failing).await.unwrap_err();
            assert!(
                matches!(failed.find_root(), DataFusionError::Execution(_)),
                "{failed:?}"
            );

            let broken = frame("select broken(n) from numbers").await;
            let error = collect_on(&cpu, broken.clone()).await.unwrap_err();
            assert!(error.to_string().contains("a broken function"), "{error}");
            let stream = stream_on(&cpu, broken, 1 << 20).await.unwrap();
            let error = stream.try_collect::<Vec<_>>().await.unwrap_err();
            assert!(error.to_string().contains("a broken function"), "{error}");

            // In one of the query's tasks.
            let broken = frame(&GROUPS.replace("threads", "broken")).await;
            let error = collect_on(&cpu, broken).await.unwrap_err();
            assert!(error.to_string().contains("a broken function"), "{error}");
        });
    }
}

/// DataFusion's own would go on, with an error for each batch.
#[test]
fn a_stream_ends_with_its_first_error() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 2);
        let context = context(1, &Names::default());
        let cpu = lanes.cpu.handle();
        let items = lanes.io.block_on(async {
            let frame = context.sql("select failing(n) from numbers").await;
            let stream = stream_on(&cpu, frame.unwrap(), 1 << 20).await.unwrap();
            stream.collect::<Vec<_>>().await
        });
        assert!(matches!(&items[..], [Err(_)]), "{items:?}");
    }
}

#[test]
fn a_full_lane_refuses_a_query() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes_with(backend, 2, |builder| {
            builder.queue_limit(Priority::Normal, 1)
        });
        let context = context(2, &Names::default());
        let cpu = lanes.cpu.handle();
        lanes.io.block_on(async {
            let frame = context.sql("select n from numbers").await.unwrap();
            let _permit = cpu.reserve().await.unwrap();
            let full = collect_on(&cpu, frame.clone()).await.unwrap_err();
            let none = stream_on(&cpu, frame, 1 << 20).await.err().unwrap();
            for full in [full, none] {
                assert!(is_unavailable(&full), "{full:?}");
            }
        });
    }
}

/// The error of the lane in a query's error.
pub fn lane_error<E: std::error::Error + 'static>(error: &DataFusionError) -> Option<&E> {
    match error {
        DataFusionError::External(error) => error.downcast_ref(),
        _ => None,
    }
}
