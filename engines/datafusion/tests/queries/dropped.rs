//! Queries that make, or drop, many rows out of few batches: for hours, if nothing stops them.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use twolane::Handle;
use twolane_datafusion::{
    EnsureYields, collect_on, run_on, sql_on, stream_on, threads_of_ended_queries,
};

use crate::setting::{GROUPS, Names, until};
use crate::support::{Lanes, lanes, thread_name, time_limit};

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

/// Tables `a` and `b`, and a function that tells that it was called.
fn context(partitions: usize, seen: mpsc::Sender<()>) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(partitions);
    let state = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config)
        .with_physical_optimizer_rule(Arc::new(EnsureYields::new()))
        .build();
    let context = SessionContext::new_with_state(state);
    let batch = |from: i64| {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + 5_000));
        let one: ArrayRef = Arc::new(Int64Array::from_iter_values((0..5_000).map(|_| 1)));
        RecordBatch::try_from_iter([("n", numbers), ("one", one)]).unwrap()
    };
    let batches: Vec<_> = (0..ROWS).step_by(5_000).map(batch).collect();
    for name in ["a", "b"] {
        let parts = batches.chunks(batches.len() / partitions);
        let parts = parts.map(<[_]>::to_vec).collect();
        let table = MemTable::try_new(batches[0].schema(), parts).unwrap();
        context.register_table(name, Arc::new(table)).unwrap();
    }
    let see = move |values: &[ColumnarValue]| {
        // A query that was seen is dropped, with the receiver.
        let _ = seen.send(());
        Ok(values[0].clone())
    };
    let (from, to) = (vec![DataType::Int64], DataType::Int64);
    let seen = create_udf("seen", from, to, Volatility::Immutable, Arc::new(see));
    context.register_udf(seen);
    context
}

/// Of this runtime.
fn alive_tasks() -> usize {
    tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks()
}

/// Waits until no part of any query is left on the lane, no task of theirs on the I/O runtime, which
/// has so many others, and until each of the lane's two threads has taken a new job.
async fn until_quiet(cpu: &Handle, tasks: usize) {
    until(|| {
        let lane = cpu.metrics();
        lane.queued + lane.running + lane.suspended + lane.tokio_tasks == 0
            && threads_of_ended_queries() == 0
    })
    .await;
    until(|| alive_tasks() <= tasks).await;
    let barrier = Arc::new(Barrier::new(2));
    let meet = [(); 2].map(|()| {
        let barrier = barrier.clone();
        cpu.spawn_cpu(move || barrier.wait())
    });
    for job in meet {
        job.await.unwrap();
    }
}

#[test]
fn a_query_that_computes_for_hours_ends() {
    let _limit = time_limit();
    let Lanes { cpu, io } = lanes(2);
    let cpu = cpu.handle().clone();
    for partitions in [1, 2] {
        for sql in HOURS {
            println!("{partitions} partitions: {sql}");
            let (sender, seen) = mpsc::channel();
            let context = context(partitions, sender);
            io.block_on(async {
                let tasks = alive_tasks();
                let query = collect_on(&cpu, context.sql(sql).await.unwrap());
                until(|| seen.try_recv().is_ok()).await;
                drop(query);
                until_quiet(&cpu, tasks).await;
                until(|| context.runtime_env().memory_pool.reserved() == 0).await;
            });
        }
    }
}

/// By each of the other ways in.
#[test]
fn so_does_each_kind_of_call() {
    let _limit = time_limit();
    let Lanes { cpu, io } = lanes(2);
    let cpu = cpu.handle().clone();
    let (sender, seen) = mpsc::channel();
    let context = context(2, sender);
    io.block_on(async {
        let tasks = alive_tasks();
        let frame = context.sql(HOURS[0]).await.unwrap();
        for from_text in [false, true] {
            let stream = match from_text {
                true => sql_on(&cpu, &context, HOURS[0], 1 << 20).await,
                false => stream_on(&cpu, frame.clone(), 1 << 20).await,
            };
            let mut stream = stream.unwrap();
            assert!(futures::poll!(stream.next()).is_pending());
            until(|| seen.try_recv().is_ok()).await;
            drop(stream);
            until_quiet(&cpu, tasks).await;
            while seen.try_recv().is_ok() {}
        }

        let own = context.clone();
        let query = async move { own.sql(HOURS[0]).await?.collect().await };
        let query = run_on(&cpu, query);
        until(|| seen.try_recv().is_ok()).await;
        drop(query);
        until_quiet(&cpu, tasks).await;
    });
}

/// What cannot be stopped is shown.
#[test]
fn a_function_that_computes_on_is_counted() {
    let _limit = time_limit();
    let Lanes { cpu, io } = lanes(2);
    let cpu = cpu.handle().clone();
    let context = crate::setting::context(2, &Names::default());
    let (began, has_begun) = mpsc::channel();
    let (let_go, wait) = mpsc::channel::<()>();
    let (wait, is_first) = (Mutex::new(wait), AtomicBool::new(true));
    let block = move |values: &[ColumnarValue]| {
        if is_first.swap(false, SeqCst) {
            began.send(thread_name()).unwrap();
            wait.lock().unwrap().recv().unwrap();
        }
        Ok(values[0].clone())
    };
    let (from, to) = (vec![DataType::Int64], DataType::Int64);
    let block = create_udf("threads", from, to, Volatility::Volatile, Arc::new(block));
    context.register_udf(block);
    io.block_on(async {
        let tasks = alive_tasks();
        let query = collect_on(&cpu, context.sql(GROUPS).await.unwrap());
        until(|| has_begun.try_recv().is_ok()).await;
        // The gauge is the process's: other tests drop queries meanwhile.
        until(|| threads_of_ended_queries() == 0).await;
        drop(query);
        // One of its threads may be in the middle of another batch.
        until(|| threads_of_ended_queries() == 1).await;
        until(|| cpu.metrics().queued + cpu.metrics().running == 0).await;
        let_go.send(()).unwrap();
        until_quiet(&cpu, tasks).await;
    });
}
