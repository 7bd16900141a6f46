//! Queries from their texts.

use std::time::Instant;

use datafusion::error::DataFusionError;
use datafusion::execution::context::SQLOptions;
use futures::TryStreamExt;
use twolane::{Backend, Priority};
use twolane_datafusion::{collect_on, is_unavailable, sql_on, sql_with_options_on};

use crate::setting::{GROUPS, Names, context, until};
use crate::support::{BOTH, lanes, lanes_with, time_limit};

#[test]
fn a_text_is_one_job() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes_with(backend, 2, |builder| {
            builder.queue_limit(Priority::Normal, 1)
        });
        let names = Names::default();
        let context = context(2, &names);
        let cpu = lanes.cpu.handle();
        lanes.io.block_on(async {
            let stream = sql_on(&cpu, &context, GROUPS, 1).await.unwrap();
            // It waits for its reader, and has the only permit.
            let full = sql_on(&cpu, &context, GROUPS, 1).await.err().unwrap();
            assert!(is_unavailable(&full), "{full:?}");
            let batches: Vec<_> = stream.try_collect().await.unwrap();
            assert_eq!(
                batches.iter().map(|batch| batch.num_rows()).sum::<usize>(),
                1_000
            );
        });
        let names = names.lock().unwrap();
        assert!(
            names.iter().all(|name| name.starts_with("cpu-")),
            "{names:?}"
        );
        if backend == Backend::Runtime {
            let ended = || cpu.metrics().completed == 1;
            lanes.io.block_on(until(ended));
            assert_eq!(cpu.metrics().submitted, 1);
        }
    }
}

#[test]
fn what_changes_something_is_refused_by_default() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let context = context(1, &Names::default());
        let cpu = lanes.cpu.handle();
        lanes.io.block_on(async {
            let create = "create table t as values (1), (2)";
            for sql in [
                create,
                "drop table numbers",
                "insert into numbers values (1)",
                "copy numbers to '/tmp/never.csv'",
                "set datafusion.execution.batch_size = 1",
            ] {
                let refused = sql_on(&cpu, &context, sql, 1).await.err().unwrap();
                assert!(matches!(refused, DataFusionError::Plan(_)), "{refused:?}");
                assert!(!is_unavailable(&refused));
            }
            assert!(!context.table_exist("t").unwrap());
            assert!(context.table_exist("numbers").unwrap());

            let all = SQLOptions::new();
            let created = sql_with_options_on(&cpu, &context, create, all, 1).await;
            created.unwrap().try_collect::<Vec<_>>().await.unwrap();
            let rows = sql_on(&cpu, &context, "select * from t", 1).await.unwrap();
            let rows: Vec<_> = rows.try_collect().await.unwrap();
            assert_eq!(rows[0].num_rows(), 2);
        });
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
            for sql in ["selec 1", "select 1 from nowhere"] {
                let wrong = sql_on(&cpu, &context, sql, 1).await.err().unwrap();
                assert!(!is_unavailable(&wrong), "{wrong:?}");
            }
            let broken = sql_on(&cpu, &context, "select broken(n) from numbers", 1).await;
            let broken = broken.unwrap().try_collect::<Vec<_>>().await.unwrap_err();
            assert!(broken.to_string().contains("a broken function"), "{broken}");
            assert!(!is_unavailable(&broken));

            let late = cpu.with_deadline(Instant::now());
            let frame = context.sql(GROUPS).await.unwrap();
            let late = collect_on(&late, frame).await.unwrap_err();
            assert!(is_unavailable(&late), "{late:?}");

            let cut = sql_on(&cpu, &context, "select n from numbers", 1)
                .await
                .unwrap();
            lanes.cpu.shutdown_background();
            let cut = cut.try_collect::<Vec<_>>().await.unwrap_err();
            assert!(is_unavailable(&cut), "{cut:?}");
            let closed = sql_on(&cpu, &context, "select 1", 1).await.err().unwrap();
            assert!(is_unavailable(&closed), "{closed:?}");
        });
    }
}
