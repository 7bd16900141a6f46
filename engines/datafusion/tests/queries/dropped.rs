//! Queries that make, or drop, many rows out of few batches: for hours, if nothing stops them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::Volatility;
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use twolane_datafusion::{
    EnsureYields, collect_on, run_on, sql_on, stream_on, threads_of_ended_queries,
};

use crate::gate::gate;
use crate::setting::{GROUPS, Site, each, function};
use crate::support::Stuck;
use crate::support::wait::wait_until;

const ROWS: i64 = 100_000;

/// Ten billion pairs each, or a hundred thousand times as many rows as their tables have; or a
/// hundred billion rows.
const HOURS: [&str; 6] = [
    "select sum(seen(a.n) * b.n) from a cross join b",
    "select a.n, b.n from a cross join b where seen(a.n) + b.n > 300000",
    "select count(*) from a join b on a.one = b.one and seen(a.n) + b.n > 300000",
    "select count(*) from a where exists \
        (select 1 from b where b.one = a.one and seen(a.n) + b.n > 300000)",
    "select k, count(*) from (select (seen(a.n) + b.n) % 7 as k from a join b on a.one = b.one) \
        group by k order by k",
    "select v % 1000 as k, sum(seen(v)) from generate_series(1, 100000000000) t(v) group by k",
];

/// Registers tables `a` and `b`, and a function that tells that it was called.
fn with_hours(context: &SessionContext) -> Receiver<()> {
    let batch = |from: i64| {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + 5_000));
        let one: ArrayRef = Arc::new(Int64Array::from_iter_values((0..5_000).map(|_| 1)));
        RecordBatch::try_from_iter([("n", numbers), ("one", one)]).unwrap()
    };
    let batches: Vec<_> = (0..ROWS).step_by(5_000).map(batch).collect();
    let partitions = context.state().config().target_partitions();
    for name in ["a", "b"] {
        let parts = batches.chunks(batches.len() / partitions);
        let parts = parts.map(<[_]>::to_vec).collect();
        let table = MemTable::try_new(batches[0].schema(), parts).unwrap();
        context.register_table(name, Arc::new(table)).unwrap();
    }
    let (sees, seen) = channel();
    let see = function("seen", Volatility::Immutable, move |values| {
        // An error: the test has ended.
        let _ = sees.send(());
        Ok(values[0].clone())
    });
    context.register_udf(see);
    seen
}

/// Drops a query once it computes, and waits until nothing is left of it: no part on the lane, and
/// each of the lane's two threads has taken a new job.
async fn ends_when_dropped<Q>(site: &Site, seen: &Receiver<()>, query: Q) {
    seen.recv().unwrap();
    drop(query);
    wait_until(|| site.cpu.metrics().tokio_tasks == 0 && threads_of_ended_queries() == 0);
    site.until_quiet();
    let both = [(); 2].map(|()| Stuck::start(&site.cpu).split());
    for (job, let_go) in both {
        let_go.send(()).unwrap();
        job.await.unwrap();
    }
    while seen.try_recv().is_ok() {}
}

#[test]
fn a_query_that_computes_for_hours_ends() {
    each(&[1, 2], async |site| {
        let seen = with_hours(&site.context);
        for sql in HOURS {
            println!("{sql}");
            let query = collect_on(&site.cpu, site.frame(sql).await);
            ends_when_dropped(site, &seen, query).await;
        }
    });
}

/// By each of the other ways in.
#[test]
fn so_does_each_kind_of_call() {
    each(&[2], async |site| {
        let seen = with_hours(&site.context);
        for from_text in [false, true] {
            let stream = match from_text {
                true => sql_on(&site.cpu, &site.context, HOURS[0], 1 << 20).await,
                false => stream_on(&site.cpu, site.frame(HOURS[0]).await, 1 << 20).await,
            };
            let mut stream = stream.unwrap();
            assert!(futures::poll!(stream.next()).is_pending());
            ends_when_dropped(site, &seen, stream).await;
        }

        let state = SessionStateBuilder::new_from_existing(site.context.state())
            .with_physical_optimizer_rule(Arc::new(EnsureYields::new()))
            .build();
        let context = SessionContext::new_with_state(state);
        let query = async move { context.sql(HOURS[0]).await?.collect().await };
        ends_when_dropped(site, &seen, run_on(&site.cpu, query)).await;
    });
}

/// What cannot be stopped is shown.
#[test]
fn a_function_that_computes_on_is_counted() {
    each(&[2], async |site| {
        let (gate, stay) = gate();
        let is_first = AtomicBool::new(true);
        let block = function("threads", Volatility::Volatile, move |values| {
            if is_first.swap(false, SeqCst) {
                stay();
            }
            Ok(values[0].clone())
        });
        site.context.register_udf(block);
        let query = collect_on(&site.cpu, site.frame(GROUPS).await);
        gate.is_reached();
        // The gauge is the process's: other tests drop queries meanwhile.
        wait_until(|| threads_of_ended_queries() == 0);
        drop(query);
        // One of its threads may be in the middle of another batch.
        wait_until(|| threads_of_ended_queries() == 1);
        wait_until(|| site.cpu.metrics().queued + site.cpu.metrics().running == 0);
        drop(gate);
        wait_until(|| threads_of_ended_queries() == 0);
        site.until_quiet();
    });
}
