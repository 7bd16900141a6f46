//! Processes that have a tracer of their own.

#[path = "../../../crates/core/tests/support/mod.rs"]
mod support;

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::future::BoxFuture;
use support::{Lanes, child, on_both, time_limit};
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
    on_both(2, |lanes| {
        let before = COUNTS.0.load(SeqCst);
        assert_eq!(query(&lanes).unwrap(), 10);
        assert!(COUNTS.0.load(SeqCst) > before);
    });
}

/// On a rayon lane it would compute on the I/O runtime. In a process of its own, whose tracer is not
/// ours.
#[test]
fn a_rayon_lane_refuses_a_query_with_the_remedy() {
    let _limit = time_limit();
    if !child::is_child() {
        let test = "a_rayon_lane_refuses_a_query_with_the_remedy";
        assert_eq!(child::run(test, |_| (), |_| ()), "it refuses");
        return;
    }
    set_join_set_tracer(&COUNTS).unwrap();
    on_both(2, |lanes| {
        let result = query(&lanes);
        if lanes.cpu.handle().tokio_handle().is_some() {
            assert_eq!(result.unwrap(), 10);
            return;
        }
        let refused = result.unwrap_err();
        let is_of_the_setting = matches!(refused, DataFusionError::Configuration(_));
        assert!(is_of_the_setting, "{refused:?}");
        assert!(refused.to_string().contains("LaneTracer::around"));
    });
    child::found("it refuses");
}
