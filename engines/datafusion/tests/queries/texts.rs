//! Queries from their texts.

use std::time::Instant;

use datafusion::error::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::Volatility;
use futures::TryStreamExt;
use twolane::Priority;
use twolane_datafusion::{collect_on, is_unavailable, sql_on, sql_with_options_on};

use crate::gate::{Gate, gate};
use crate::setting::{GROUPS, Site, each, each_with, function, rows};
use crate::support::thread_name;
use crate::support::wait::wait_until;

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
        wait_until(|| cpu.metrics().completed == 1);
        assert_eq!(cpu.metrics().submitted, 1);
    });
}

#[test]
fn what_is_no_query_is_refused_by_default() {
    each(&[1], async |site| {
        let (cpu, context) = (&site.cpu, &site.context);
        let create = "create table t as values (1), (2)";
        let explain = "explain select 1";
        let analyze = "explain analyze verbose select 1";
        for sql in [
            create,
            "drop table numbers",
            "insert into numbers values (1)",
            "copy numbers to '/tmp/never.csv'",
            "set datafusion.execution.batch_size = 1",
            explain,
            analyze,
        ] {
            let refused = sql_on(cpu, context, sql, 1).await.err().unwrap();
            assert!(matches!(refused, DataFusionError::Plan(_)), "{refused:?}");
            assert!(!is_unavailable(&refused));
        }
        assert!(!context.table_exist("t").unwrap());
        assert!(context.table_exist("numbers").unwrap());

        for sql in [create, explain, analyze] {
            let allowed = sql_with_options_on(cpu, context, sql, SQLOptions::new(), 1).await;
            allowed.unwrap().try_collect::<Vec<_>>().await.unwrap();
        }
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

/// Has the session a function that DataFusion calls while it plans: it adds the thread's name to
/// `names`, and stays until the gate opens.
fn with_stuck(site: &Site) -> Gate {
    let (gate, stay) = gate();
    let names = site.names.clone();
    let stuck = function("stuck", Volatility::Immutable, move |values| {
        names.lock().unwrap().insert(thread_name());
        stay();
        Ok(values[0].clone())
    });
    site.context.register_udf(stuck);
    gate
}

const STUCK: &str = "select stuck(1)";

/// It took a thread of the query's priority, and its place in the queue until it was planned, though
/// its caller had gone.
#[test]
fn a_text_that_is_planned_for_long_takes_a_thread_of_low() {
    let set = |lane: twolane::Builder| lane.queue_limit(Priority::Normal, 1);
    each_with(&[2], set, async |site| {
        let (cpu, context) = (&site.cpu, &site.context);
        let gate = with_stuck(site);
        let planning = sql_on(cpu, context, STUCK, 1);
        gate.is_reached();
        site.assert_computed_on("cpu-low-");
        drop(planning);
        wait_until(|| cpu.metrics().permits_in_use == 0);
        let other = sql_on(cpu, context, GROUPS, 1).await.unwrap();
        assert_eq!(rows(&other.try_collect::<Vec<_>>().await.unwrap()), 1_000);
    });
}

/// As many texts are planned at a time as the lane has threads.
#[test]
fn a_text_that_waits_for_its_turn_can_be_dropped() {
    each(&[2], async |site| {
        let (cpu, context) = (&site.cpu, &site.context);
        let low = cpu.with_priority(Priority::Low);
        let running = sql_on(cpu, context, GROUPS, 1).await.unwrap();
        let gate = with_stuck(site);
        let planning = [(); 2].map(|()| sql_on(cpu, context, STUCK, 1));
        for _ in &planning {
            gate.is_reached();
        }
        let waits = sql_on(cpu, context, "select 1", 1);
        wait_until(|| low.metrics().queued == 1);
        // What is planned goes on, and so do other jobs.
        assert_eq!(rows(&running.try_collect::<Vec<_>>().await.unwrap()), 1_000);
        assert_eq!(cpu.spawn_cpu(|| 1).await.unwrap(), 1);
        drop(waits);
        drop(gate);
        for planned in planning {
            planned.await.unwrap();
        }
        wait_until(|| low.metrics().queued == 0 && low.metrics().cancelled == 1);
    });
}
