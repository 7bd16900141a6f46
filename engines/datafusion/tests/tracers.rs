//! Processes that have a tracer of their own.

#[path = "../../../crates/core/tests/support/mod.rs"]
mod support;

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::future::BoxFuture;
use support::{Lanes, child, lanes};
use twolane_datafusion::{LaneTracer, collect_on};

type Output = Box<dyn Any + Send>;

/// Counts the tasks of queries, which have to run on the lane.
struct Counts(AtomicUsize);

static COUNTS: Counts = Counts(AtomicUsize::new(0));

impl JoinSetTracer for Counts {
    fn trace_future(&self, future: BoxFuture<'static, Output>) -> BoxFuture<'static, Output> {
        Box::pin(async move {
            let thread = support::thread_name();
            assert!(thread.starts_with("cpu-"), "{thread}");
            COUNTS.0.fetch_add(1, SeqCst);
            future.await
        })
    }

    fn trace_block(
        &self,
        f: Box<dyn FnOnce() -> Output + Send>,
    ) -> Box<dyn FnOnce() -> Output + Send> {
        f
    }
}

/// A query with tasks; how many rows it has.
fn query(Lanes { cpu, io }: &Lanes) -> Result<usize> {
    let config = SessionConfig::new().with_target_partitions(4);
    let context = SessionContext::new_with_config(config);
    let sql = "select v % 10 as k, count(*) from generate_series(1, 100000) t(v) group by k";
    io.block_on(async {
        let frame = context.sql(sql).await.unwrap();
        let batches = collect_on(cpu.handle(), frame).await?;
        Ok(batches.iter().map(|batch| batch.num_rows()).sum())
    })
}

#[test]
fn a_tracer_before_it_is_called_on_the_lane() {
    LaneTracer::around(&COUNTS).install().unwrap();
    assert!(LaneTracer::new().install().is_err());
    assert_eq!(query(&lanes(2)).unwrap(), 10);
    assert!(COUNTS.0.load(SeqCst) > 0);
}

/// In a process of its own, whose tracer is not ours.
#[test]
fn with_another_tracer_a_query_computes_on_the_lane() {
    if !child::is_child() {
        let test = "with_another_tracer_a_query_computes_on_the_lane";
        assert_eq!(child::run(test, |_| (), |_| ()), "10");
        return;
    }
    set_join_set_tracer(&COUNTS).unwrap();
    let rows = query(&lanes(2)).unwrap();
    assert!(COUNTS.0.load(SeqCst) > 0);
    child::found(rows);
}
