//! Texts that are as large as `sql_on` takes, in a process of their own, which they may end.

#[path = "../../../../crates/core/tests/support/mod.rs"]
mod support;

use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::SQLOptions;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::TryStreamExt;
use support::{child, lanes, lanes_with};
use twolane::{Builder, Handle, Niceness};
use twolane_datafusion::{SqlLimits, sql_on, sql_with_options_on};

const ROWS: &str =
    "create table t as select value as n, value % 2 = 0 as b from generate_series(1, 3)";

async fn with_rows(cpu: &Handle) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(2);
    let context = SessionContext::new_with_config(config);
    run(cpu, &context, ROWS).await.unwrap();
    context
}

/// Plans the text, runs it, and drops its rows on this thread. Returns how many there are.
async fn run(cpu: &Handle, context: &SessionContext, text: &str) -> Result<usize> {
    let stream = sql_with_options_on(cpu, context, text, SQLOptions::new(), 1 << 20).await?;
    let batches: Vec<_> = stream.try_collect().await?;
    Ok(batches.iter().map(|batch| batch.num_rows()).sum())
}

#[test]
fn the_queries_of_tpc_h_pass() {
    let (cpu, lanes) = lanes(1).and_handle();
    lanes.io.block_on(async {
        for text in twolane_tpch::queries::all() {
            let error = sql_on(&cpu, &SessionContext::new(), text, 1).await.err();
            let error = error.expect("it reads a table").to_string();
            assert!(error.contains("not found"), "{error}: {text}");
        }
    });
}

/// `open`, `n` times, `core`, and `close` as often.
fn nest(open: &str, n: usize, core: &str, close: &str) -> String {
    format!("{}{core}{}", open.repeat(n), close.repeat(n))
}

/// `link`, whose `@` is its number and `#` the one before, `n` times.
fn chain(link: &str, n: usize) -> String {
    let link = |i: usize| {
        let before = (i - 1).to_string();
        link.replace('@', &i.to_string()).replace('#', &before)
    };
    (1..=n).map(link).collect()
}

/// As large as the limits allow, or as takes some seconds.
fn texts() -> [String; 17] {
    let lists = |n| format!("'{}'", nest("List(", n, "Int64", ")"));
    let arrays = |n| nest("array<", n, "int", ">");
    let dates = nest("to_timestamp(date_part('year',", 22, "now()", "))");
    let cte = |link, n| {
        let tables = chain(link, n);
        format!("with c0 as (select n from t){tables} select n from c{n}")
    };
    [
        format!("select arrow_cast('1', {})", lists(990)),
        format!("select arrow_cast(n, {}) from t", lists(60)),
        format!(
            "select count(*) from t group by arrow_cast(n, {})",
            lists(150)
        ),
        format!("select {} '1'", arrays(330)),
        format!("select count(cast(n as {})) from t", arrays(330)),
        format!("select cast(1 as {}", "array<".repeat(495)),
        format!("select {}'1'", "interval ".repeat(998)),
        format!("{}select 1", "explain ".repeat(998)),
        nest("select 1,(", 12, "select 1", ")"),
        format!("select n{} from t", "+n".repeat(300)),
        format!("select n from t where b{}", chain(" or n>@", 300)),
        format!("select n from t where b{}", " is true".repeat(490)),
        format!("select n{} from t", "::int::text".repeat(200)),
        format!("select {dates} from t"),
        cte(",c@ as (select 1-n n from c#)", 60),
        cte(",c@ as (select [n] n from c#)", 60),
        format!("select 1 from t{} where t.n=4", chain(", t t@", 30)),
    ]
}

/// A type of 9,631 bytes in a string and a typed string of 1,424 ended the process, and so had a sum
/// of 206 bytes. The lane's threads have a quarter of the stack that threads have by default.
#[test]
fn no_text_within_the_limits_overflows_a_stack() {
    let test = "no_text_within_the_limits_overflows_a_stack";
    if !child::is_child() {
        assert_eq!(child::run(test, |_| (), |_| ()), texts().len().to_string());
        return;
    }
    let set = |lane: Builder| lane.thread_stack_size(512 << 10).niceness(Niceness::off());
    let (cpu, lanes) = lanes_with(2, set).and_handle();
    let context = lanes.io.block_on(with_rows(&cpu));
    let mut planned = 0;
    for text in texts() {
        println!("{text:.60}, {} bytes", text.len());
        let ended = format!("{:?}", lanes.io.block_on(run(&cpu, &context, &text)));
        println!("{ended:.100}");
        planned += usize::from(!ended.contains("SqlLimits"));
    }
    child::found(planned);
}

/// What reads rows recurses on a stack of its own: an encoder of 900 levels ended the process.
#[test]
fn types_of_rows_do_not_nest_further() {
    let (cpu, lanes) = lanes(1).and_handle();
    lanes.io.block_on(async {
        let context = SessionContext::new();
        for (open, core, close) in [
            ("List(", "Int64", ")"),
            ("LargeList(", "Int64", ")"),
            ("FixedSizeList(1, ", "Int64", ")"),
            ("Dictionary(Int32, ", "Utf8", ")"),
        ] {
            let text = |n| format!("select arrow_cast(null, '{}')", nest(open, n, core, close));
            let refused = run(&cpu, &context, &text(65)).await.err();
            let refused = refused.map(|error| error.to_string()).unwrap_or_default();
            assert!(refused.contains("nests 65 levels deep"), "{open} {refused}");
        }
    });
}

/// The parser read what is in such brackets for ever: some it reads three times.
#[test]
fn the_largest_errors_end() {
    let (cpu, lanes) = lanes(1).and_handle();
    lanes.io.block_on(async {
        for open in ["not (", "cast(", "array[", "1 from a, ((select "] {
            let text = format!("select {}1 1", open.repeat(12));
            let error = sql_on(&cpu, &SessionContext::new(), &text, 1).await.err();
            let error = error.expect(open).to_string();
            assert!(error.contains("SQL error"), "{error}");
        }
    });
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
    let (cpu, lanes) = lanes(1).and_handle();
    let bytes = |l: &mut SqlLimits| l.bytes *= 2;
    let operators = |l: &mut SqlLimits| l.operators *= 2;
    let brackets = |l: &mut SqlLimits| l.brackets *= 2;
    let long = format!("select '{}'", "x".repeat(16 << 10));
    let items = format!("select {}", vec!["1 + 1"; 1_100].join(","));
    let joins = format!("select 1 from t{}", ",t".repeat(999));
    let types = format!("select '{}'", "List(".repeat(1_000));
    let cast = format!("select {}", nest("cast(", 13, "1", " as int)"));
    let commas = format!("select cast(1, {}", "(2, ".repeat(12));
    let size = "16393 bytes, and the limit is 16384";
    let ops = "1001 operators, keywords and brackets, and the limit is 1000";
    let nested = "13 nested brackets that follow a keyword or a comma, and the limit is 12";
    lanes.io.block_on(async {
        for (text, said, raised) in [
            (long, size, limits(bytes)),
            (items, &ops.replace("001", "101"), limits(operators)),
            (joins, ops, limits(operators)),
            (types, ops, limits(operators)),
            (cast, nested, limits(brackets)),
            (commas, nested, limits(brackets)),
        ] {
            let context = SessionContext::new();
            let options = SQLOptions::new();
            for refused in [
                sql_on(&cpu, &context, &text, 1).await,
                sql_with_options_on(&cpu, &context, &text, options, 1).await,
            ] {
                let refused = refused.err().expect(said);
                assert!(matches!(refused, DataFusionError::Plan(_)), "{refused:?}");
                let refused = refused.to_string();
                assert!(refused.contains(said), "{refused}");
                assert!(refused.contains("raise `SqlLimits::"), "{refused}");
            }
            if text.contains(",t") {
                continue; // it is planned for long
            }
            let error = sql_on(&cpu, &raised, &text, 1).await.err();
            let is_refused = error.is_some_and(|error| error.to_string().contains("SqlLimits"));
            assert!(!is_refused, "raised: {said}");
        }
    });
}
