//! A process whose tracer is not ours.

#[path = "../../tests/support/mod.rs"]
mod support;

use std::any::Any;

use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use futures::future::BoxFuture;
use support::{BOTH, lanes, time_limit};
use twolane::Backend;
use twolane_datafusion::collect_on;

type Output = Box<dyn Any + Send>;

struct Other;

impl JoinSetTracer for Other {
    fn trace_future(&self, future: BoxFuture<'static, Output>) -> BoxFuture<'static, Output> {
        future
    }

    fn trace_block(
        &self,
        f: Box<dyn FnOnce() -> Output + Send>,
    ) -> Box<dyn FnOnce() -> Output + Send> {
        f
    }
}

/// On a rayon lane it would compute on the I/O runtime.
#[test]
fn a_rayon_lane_refuses_a_query_with_the_remedy() {
    let _limit = time_limit();
    set_join_set_tracer(&Other).unwrap();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let context = SessionContext::new();
        let result = lanes.io.block_on(async {
            let frame = context.sql("select 1").await.unwrap();
            collect_on(&lanes.cpu.handle(), frame).await
        });
        if backend == Backend::Runtime {
            assert_eq!(result.unwrap()[0].num_rows(), 1);
            continue;
        }
        let refused = result.unwrap_err();
        assert!(
            matches!(refused, DataFusionError::Configuration(_)),
            "{refused:?}"
        );
        assert!(refused.to_string().contains("LaneTracer::around"));
    }
}
