//! A table whose rows come from a task of the I/O runtime, as those of a consumer of a queue do.

use std::fmt;
use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::mpsc;
use twolane::{JoinError, JoinErrorKind};
use twolane_datafusion::{collect_on, stream_on};

use crate::setting::{Site, lane_error};

fn batch() -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    RecordBatch::try_from_iter([("n", numbers)]).unwrap()
}

/// What its reader takes for its end is the end of the sender.
struct Fed {
    schema: SchemaRef,
    rows: Mutex<Option<mpsc::Receiver<RecordBatch>>>,
}

impl fmt::Debug for Fed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fed")
    }
}

impl PartitionStream for Fed {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = self.rows.lock().unwrap().take().expect("one query");
        let rows = stream::unfold(rows, async |mut rows| Some((Ok(rows.recv().await?), rows)));
        let schema = self.schema.clone();
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }
}

/// A table that a task of `io` feeds, without an end.
fn fed_by(io: &tokio::runtime::Runtime) -> StreamingTable {
    let (sender, rows) = mpsc::channel(1);
    io.spawn(async move {
        while sender.send(batch()).await.is_ok() {
            tokio::task::yield_now().await;
        }
    });
    let (schema, rows) = (batch().schema(), Mutex::new(Some(rows)));
    let fed = Fed {
        schema: schema.clone(),
        rows,
    };
    StreamingTable::try_new(schema, vec![Arc::new(fed)]).unwrap()
}

/// Not a result that lacks the rows that did not come.
#[test]
fn the_end_of_the_task_that_feeds_it_is_an_error() {
    let other = tokio::runtime::Runtime::new().unwrap();
    for streams in [false, true] {
        let site = Site::new(2, |lane| lane);
        let fed = Arc::new(fed_by(&site.lanes.io));
        site.context.register_table("fed", fed).unwrap();
        let error = other.block_on(async {
            let frame = site.frame("select sum(threads(n)) from fed").await;
            let query: BoxFuture<'_, Result<Vec<RecordBatch>>> = if streams {
                let mut rows = stream_on(&site.cpu, frame, 1).await.unwrap();
                assert!(futures::poll!(rows.next()).is_pending());
                Box::pin(rows.try_collect())
            } else {
                Box::pin(collect_on(&site.cpu, frame))
            };
            site.until_it_computes();
            site.lanes.io.shutdown_background();
            query.await.unwrap_err()
        });
        let is_gone = lane_error(&error)
            .is_some_and(|error: &JoinError| error.kind() == JoinErrorKind::IoRuntimeGone);
        // The lane ends with its I/O runtime, and so a stream that it feeds.
        let is_cut_off = streams && error.to_string().contains("the CPU lane stopped");
        assert!(is_gone || is_cut_off, "{error}");
    }
}
