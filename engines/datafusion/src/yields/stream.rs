//! [`YieldStream`]: a stream that yields once per slice of time.
//!
//! **Its own clock.** A slice begins with the first poll after a `Pending`, and each stream measures
//! it by itself. So a stream that has yielded reads at least once before it yields again, whatever
//! else runs on its thread. The slices of [`yield_if_due`](twolane_core::yield_if_due) are those of
//! a thread, outside of jobs: where a task that does not yield shares it, a query whose streams
//! yield one inside the other would make no progress.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::{Stream, StreamExt, ready};

use super::in_task::poll_yield;
use super::slices::Slices;

/// As long as the shortest slice of `yield_if_due`.
const SLICE: Duration = Duration::from_millis(5);

pub struct YieldStream {
    inner: SendableRecordBatchStream,
    /// When the slice began, or `None` after a `Pending`.
    began: Option<Instant>,
    slices: Option<Slices>,
}

impl YieldStream {
    pub fn new(inner: SendableRecordBatchStream, slices: bool) -> Self {
        Self {
            inner,
            began: None,
            slices: slices.then(Slices::default),
        }
    }

    fn poll_inner(
        &mut self,
        now: Instant,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<RecordBatch>>> {
        let Some(slices) = &mut self.slices else {
            return self.inner.poll_next_unpin(cx);
        };
        slices.asked(now);
        if let Some(slice) = slices.next(now) {
            return Poll::Ready(Some(Ok(slice)));
        }
        let next = ready!(self.inner.poll_next_unpin(cx));
        Poll::Ready(next.map(|batch| Ok(slices.divide(batch?, Instant::now()))))
    }
}

impl Stream for YieldStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let now = Instant::now();
        let began = *self.began.get_or_insert(now);
        let polled = if now - began < SLICE {
            self.poll_inner(now, cx)
        } else {
            poll_yield(cx).map(|()| None)
        };
        if polled.is_pending() {
            self.began = None;
        }
        polled
    }
}

impl RecordBatchStream for YieldStream {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }
}
