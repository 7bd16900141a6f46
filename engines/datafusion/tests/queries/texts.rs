//! Queries from their texts.

use std::cell::OnceCell;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

use datafusion::arrow::datatypes::DataType;
use datafusion::error::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use twolane::Priority;
use twolane_datafusion::{collect_on, is_unavailable, sql_on, sql_with_options_on};

use crate::setting::{GROUPS, each, each_with, rows, until};
use crate::support::thread_name;

#[test]
fn a_text_is_one_job() {
    let set = |lane: twolane::Builder| lane.queue_limit(Priority::Normal, 1);
    each_with(&[2], set, async |site| {
        let (cpu, context) = (&site.cpu, &site.context);
        let stream = sql_on(cpu, context, GROUPS, 1).await.unwrap();
        // It waits for its reader, and has the only permit.
        let full = sql_on(cpu, context, GROUPS, 1).await.err().unwrap();
        assert!(is_unavailable(&full), "{full:?}");
        let batches: Vec<_> = stream.try_collect().await.unwrap();
        assert_eq!(rows(&batches), 1_000);
        site.assert_computed_on("cpu-");
        until(|| cpu.metrics().completed == 1).await;
        assert_eq!(cpu.metrics().submitted, 1);
    });
}

#[test]
fn what_changes_something_is_refused_by_default() {
    each(&[1], async |site| {
        let (cpu, context) = (&site.cpu, &site.context);
        let create = "create table t as values (1), (2)";
        for sql in [
            create,
            "drop table numbers",
            "insert into numbers values (1)",
            "copy numbers to '/tmp/never.csv'",
            "set datafusion.execution.batch_size = 1",
        ] {
            let refused = sql_on(cpu, context, sql, 1).await.err().unwrap();
            assert!(matches!(refused, DataFusionError::Plan(_)), "{refused:?}");
            assert!(!is_unavailable(&refused));
        }
        assert!(!context.table_exist("t").unwrap());
        assert!(context.table_exist("numbers").unwrap());

        let all = SQLOptions::new();
        let created = sql_with_options_on(cpu, context, create, all, 1).await;
        created.unwrap().try_collect::<Vec<_>>().await.unwrap();
        let read = sql_on(cpu, context, "select * from t", 1).await.unwrap();
        assert_eq!(rows(&read.try_collect::<Vec<_>>().await.unwrap()), 2);
    });
}

#[test]
fn errors_say_what_happened() {
    each(&[2], async |site| {
        let (cpu, context) = (&site.cpu, &site.context);
        for sql in ["selec 1", "select 1 from nowhere"] {
            let wrong = sql_on(cpu, context, sql, 1).await.err().unwrap();
            assert!(!is_unavailable(&wrong), "{wrong:?}");
        }
        let broken = sql_on(cpu, context, "select broken(n) from numbers", 1).await;
        let broken = broken.unwrap().try_collect::<Vec<_>>().await.unwrap_err();
        assert!(broken.to_string().contains("a broken function"), "{broken}");
        assert!(!is_unavailable(&broken));

        let late = cpu.with_deadline(Instant::now());
        let late = collect_on(&late, site.frame(GROUPS).await)
            .await
            .unwrap_err();
        assert!(is_unavailable(&late), "{late:?}");

        let cut = sql_on(cpu, context, "select n from numbers", 1).await;
        site.lanes.cpu.shutdown_background();
        let cut = cut.unwrap().try_collect::<Vec<_>>().await.unwrap_err();
        assert!(is_unavailable(&cut), "{cut:?}");
        let closed = sql_on(cpu, context, "select 1", 1).await.err().unwrap();
        assert!(is_unavailable(&closed), "{closed:?}");
    });
}

/// Has the session a function that DataFusion calls while it plans: it tells where, and returns once
/// the sender is gone.
fn with_stuck(context: &SessionContext) -> (mpsc::Receiver<String>, mpsc::Sender<()>) {
    let (begins, began) = mpsc::channel();
    let (let_go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let stuck = move |values: &[ColumnarValue]| {
        begins.send(thread_name()).unwrap();
        let _ = wait.lock().unwrap().recv();
        Ok(values[0].clone())
    };
    let types = (vec![DataType::Int64], DataType::Int64);
    let stuck = create_udf(
        "stuck",
        types.0,
        types.1,
        Volatility::Immutable,
        Arc::new(stuck),
    );
    context.register_udf(stuck);
    (began, let_go)
}

const STUCK: &str = "select stuck(1)";

/// It took a thread of the query's priority, and its place in the queue until it was planned, though
/// its caller had gone.
#[test]
fn a_text_that_is_planned_for_long_takes_a_thread_of_low() {
    let set = |lane: twolane::Builder| lane.queue_limit(Priority::Normal, 1);
    each_with(&[2], set, async |site| {
        let (cpu, context) = (&site.cpu, &site.context);
        let (began, let_go) = with_stuck(context);
        let planning = sql_on(cpu, context, STUCK, 1);
        let thread = OnceCell::new();
        until(|| began.try_recv().is_ok_and(|it| thread.set(it).is_ok())).await;
        assert!(thread.get().unwrap().starts_with("cpu-low-"));
        drop(planning);
        until(|| cpu.metrics().permits_in_use == 0).await;
        let other = sql_on(cpu, context, GROUPS, 1).await.unwrap();
        assert_eq!(rows(&other.try_collect::<Vec<_>>().await.unwrap()), 1_000);
        drop(let_go);
    });
}

/// As many texts are planned at a time as the lane has threads.
#[test]
fn a_text_that_waits_for_its_turn_can_be_dropped() {
    each(&[2], async |site| {
        let (cpu, context) = (&site.cpu, &site.context);
        let low = cpu.with_priority(Priority::Low);
        let running = sql_on(cpu, context, GROUPS, 1).await.unwrap();
        let (began, let_go) = with_stuck(context);
        let planning = [(); 2].map(|()| sql_on(cpu, context, STUCK, 1));
        until(|| low.metrics().running == 2 && began.try_recv().is_ok()).await;
        let waits = sql_on(cpu, context, "select 1", 1);
        until(|| low.metrics().queued == 1).await;
        // What is planned goes on, and so do other jobs.
        assert_eq!(rows(&running.try_collect::<Vec<_>>().await.unwrap()), 1_000);
        assert_eq!(cpu.spawn_cpu(|| 1).await.unwrap(), 1);
        drop(waits);
        drop(let_go);
        for planned in planning {
            planned.await.unwrap();
        }
        until(|| low.metrics().queued == 0 && low.metrics().cancelled == 1).await;
    });
}
