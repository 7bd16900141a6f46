//! Texts that are as large as `sql_on` takes, in a process of their own, which they may end.

mod productions;
#[path = "../../../../crates/core/tests/support/mod.rs"]
mod support;

use std::sync::Arc;

use datafusion::error::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::TryStreamExt;
use productions::{ALL, BROKEN, Production};
use support::{child, lanes, lanes_with, time_limit};
use twolane::{Backend, Handle};
use twolane_datafusion::{SqlLimits, sql_on, sql_with_options_on};

const ROWS: &str = "create table t as select value as n, value as m, value % 2 = 0 as b, 'row' as s \
    from generate_series(1, 3)";

async fn with_rows(cpu: &Handle) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(1);
    let context = SessionContext::new_with_config(config);
    let created = sql_with_options_on(cpu, &context, ROWS, SQLOptions::new(), 1).await;
    created.unwrap().try_collect::<Vec<_>>().await.unwrap();
    context
}

/// The largest text of a production whose error, where there are no tables, says `passed`.
async fn largest(cpu: &Handle, production: &Production, passed: impl Fn(&str) -> bool) -> String {
    let (mut most, mut too_many) = (1, 16 << 10);
    while too_many - most > 1 {
        let n = (most + too_many) / 2;
        let text = production.text(n);
        let error = sql_on(cpu, &SessionContext::new(), &text, 1).await.err();
        match passed(&error.expect("it reads a table").to_string()) {
            true => most = n,
            false => too_many = n,
        }
    }
    println!("{}, {most} times", production.name);
    production.text(most)
}

#[test]
fn the_queries_of_tpc_h_pass() {
    let _limit = time_limit();
    let lanes = lanes(Backend::Runtime, 1);
    let cpu = lanes.cpu.handle();
    lanes.io.block_on(async {
        for text in twolane_tpch::queries::all() {
            let error = sql_on(&cpu, &SessionContext::new(), text, 1).await.err();
            let error = error.expect("it reads a table").to_string();
            assert!(error.contains("not found"), "{error}: {text}");
        }
    });
}

/// With a quarter of the stacks that threads have by default; unoptimized with all of it.
fn in_child(test: &str, run: impl AsyncFnOnce(&Handle) -> usize, count: usize) {
    if !child::is_child() {
        let found = child::run(test, |_| (), |_| ());
        assert_eq!(found, count.to_string());
        return;
    }
    let stack = if cfg!(debug_assertions) {
        2 << 20
    } else {
        512 << 10
    };
    let set = |lane: twolane::Builder| lane.thread_stack_size(stack);
    let lanes = lanes_with(Backend::Runtime, 1, set);
    let cpu = lanes.cpu.handle();
    child::found(lanes.io.block_on(run(&cpu)));
}

/// A sum of 206 bytes overflowed the stack of a lane's thread, which ends the process. 20 CTEs, or
/// `between`s of `between`s, were planned for ever, and no deadline frees a thread that plans.
#[test]
fn the_largest_queries_end() {
    let run = async |cpu: &Handle| {
        let context = with_rows(cpu).await;
        for production in ALL {
            let _limit = time_limit();
            let text = largest(cpu, production, |error| error.contains("not found")).await;
            let batches = async {
                let stream = sql_on(cpu, &context, &text, 1 << 20).await?;
                stream.try_collect::<Vec<_>>().await
            };
            if let Err(error) = batches.await {
                println!("{:.200}", error.to_string());
            }
        }
        ALL.len()
    };
    in_child("the_largest_queries_end", run, ALL.len());
}

/// `position(position(.. 1 1` was parsed for ever.
#[test]
fn the_largest_errors_end() {
    let run = async |cpu: &Handle| {
        for production in BROKEN {
            let _limit = time_limit();
            let text = largest(cpu, production, |error| !error.contains("limit")).await;
            let error = sql_on(cpu, &SessionContext::new(), &text, 1).await;
            assert!(error.is_err());
        }
        BROKEN.len()
    };
    in_child("the_largest_errors_end", run, BROKEN.len());
}

fn limits(set: impl FnOnce(&mut SqlLimits)) -> SessionContext {
    let mut limits = SqlLimits::default();
    set(&mut limits);
    let config = SessionConfig::new().with_extension(Arc::new(limits));
    SessionContext::new_with_config(config)
}

/// What the largest text of a kind is, and what an owner does about it.
#[test]
fn an_error_names_the_limit_and_its_field() {
    let _limit = time_limit();
    let lanes = lanes(Backend::Runtime, 1);
    let cpu = lanes.cpu.handle();
    let ors = format!("select 1 {}", "or true ".repeat(300));
    let cast = format!("select {}1{}", "cast(".repeat(13), " as int)".repeat(13));
    let between = format!("select x {} from t", "between x and true ".repeat(20));
    let long = format!("select '{}'", "x".repeat(16 << 10));
    let items = format!("select {}", vec!["1 + 1"; 1_100].join(","));
    lanes.io.block_on(async {
        for (text, said, raised) in [
            (
                &long,
                "16393 bytes, and the limit is 16384",
                limits(|l| l.bytes *= 2),
            ),
            (
                &items,
                "1101 operators, keywords and brackets, and the limit is 1000",
                limits(|l| l.operators *= 2),
            ),
            (
                &cast,
                "13 brackets that follow a keyword, and the limit is 12",
                limits(|l| l.brackets *= 2),
            ),
            (&ors, "and the limit is 200", limits(|l| l.depth *= 2)),
            (
                &between,
                "and the limit is 20000",
                limits(|l| l.weight = u64::MAX),
            ),
        ] {
            let context = SessionContext::new();
            let options = SQLOptions::new();
            for refused in [
                sql_on(&cpu, &context, text, 1).await,
                sql_with_options_on(&cpu, &context, text, options, 1).await,
            ] {
                let refused = refused.err().expect(said);
                assert!(matches!(refused, DataFusionError::Plan(_)), "{refused:?}");
                let refused = refused.to_string();
                assert!(refused.contains(said), "{refused}");
                assert!(refused.contains("raise `SqlLimits::"), "{refused}");
            }
            let error = sql_on(&cpu, &raised, text, 1).await.err();
            let is_refused = error.is_some_and(|error| error.to_string().contains("SqlLimits"));
            assert!(!is_refused, "raised: {said}");
        }
    });
}

#[test]
fn a_queries_plan_is_not_explained() {
    let _limit = time_limit();
    let lanes = lanes(Backend::Runtime, 1);
    let cpu = lanes.cpu.handle();
    lanes.io.block_on(async {
        let context = SessionContext::new();
        for text in ["explain select 1", "explain analyze verbose select 1"] {
            let refused = sql_on(&cpu, &context, text, 1).await.err().unwrap();
            assert!(matches!(refused, DataFusionError::Plan(_)), "{refused:?}");
            let options = SQLOptions::new();
            let explained = sql_with_options_on(&cpu, &context, text, options, 1).await;
            assert!(explained.is_ok());
        }
    });
}
