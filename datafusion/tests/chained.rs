//! A process that has a tracer of its own.

#[path = "../../tests/support/mod.rs"]
mod support;

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use datafusion::common::runtime::JoinSetTracer;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::future::BoxFuture;
use support::{BOTH, lanes, time_limit};
use twolane_datafusion::{LaneTracer, collect_on};

type Output = Box<dyn Any + Send>;

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

#[test]
fn a_tracer_before_it_is_called_on_the_lane() {
    let _limit = time_limit();
    LaneTracer::around(&COUNTS).install().unwrap();
    assert!(LaneTracer::new().install().is_err());
    for backend in BOTH {
        let before = COUNTS.0.load(SeqCst);
        let lanes = lanes(backend, 2);
        let config = SessionConfig::new().with_target_partitions(4);
        let context = SessionContext::new_with_config(config);
        let sql = "select v % 10 as k, count(*) from generate_series(1, 100000) t(v) group by k";
        lanes.io.block_on(async {
            let frame = context.sql(sql).await.unwrap();
            collect_on(&lanes.cpu.handle(), frame).await.unwrap();
        });
        assert!(COUNTS.0.load(SeqCst) > before);
    }
}
