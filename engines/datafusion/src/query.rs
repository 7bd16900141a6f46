//! [`collect_on`], [`stream_on`] and [`run_on`]: a query on a lane.
//!
//! A query is a job inside `in_cpu_context`, and its tasks are Tokio's, on the lane.
//!
//! **What a runtime cuts short is not told as whole.** A runtime that is shut down drops the
//! query's tasks, and those that feed its tables. The channel of a task that is gone looks to the
//! reader like that of a task at its end: the query may go on to a result that lacks rows, or fail
//! with an error that does not say why. So a result counts only if both lanes still work then.

use std::error::Error;
use std::future::pending;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::internal_datafusion_err;
use datafusion::dataframe::DataFrame;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, collect, execute_stream};
use futures::channel::oneshot;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use twolane_core::{Handle, Task, adapters, in_cpu_context};

use crate::parts::QueryGuard;
use crate::tracer;
use crate::yields::ensure_yields;

/// Plans `frame` on the CPU lane of `handle`, runs it there, and returns its batches.
///
/// The query begins with the call, before the first poll.
///
/// As [`DataFrame::collect`], it holds the whole result in memory; [`stream_on`] does not.
///
/// # Errors
///
/// Those of the query, and those of the lane: see [the crate](crate#errors).
///
/// # Cancel safety
///
/// Dropping the future cancels the query: its tasks end at their next poll ([when that
/// is](crate#what-it-does-not-do)).
///
/// # Cost
///
/// That of a job, and at its end of a hop to the I/O lane and back: each takes what the guide
/// says of an offload (`twolane::guide::cost`).
///
/// # Examples
///
/// See [the crate](crate).
#[track_caller]
pub fn collect_on(
    handle: &Handle,
    frame: DataFrame,
) -> impl Future<Output = Result<Vec<RecordBatch>>> + Send + use<> {
    run_on(handle, async move {
        let (plan, context) = plan_of(frame).await?;
        collect(plan, context).await
    })
}

/// Runs `query`, any future that uses DataFusion, on the CPU lane of `handle`.
///
/// It begins with the call, before the first poll.
///
/// For what [`collect_on`] and [`stream_on`] do not do: to make a frame on the lane, to write files,
/// to insert.
///
/// It cannot reach the plans that `query` makes: add [`EnsureYields`](crate::EnsureYields) to their
/// session, or they may compute on for long after `query` was dropped.
///
/// # Errors
///
/// Those of `query`, and those of the lane: see [the crate](crate#errors).
///
/// # Cancel safety
///
/// Dropping the future cancels the query: its tasks end at their next poll ([when that
/// is](crate#what-it-does-not-do)).
///
/// # Cost
///
/// That of a job, and at its end of a hop to the I/O lane and back: each takes what the guide
/// says of an offload (`twolane::guide::cost`).
///
/// # Examples
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use twolane_datafusion::run_on;
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let cpu = twolane::CpuRuntime::new()?;
/// let ctx = SessionContext::new();
/// let query = async move { ctx.sql("select 6 * 7").await?.collect().await };
/// let batches = run_on(cpu.handle(), query).await?;
/// assert_eq!(batches[0].num_rows(), 1);
/// # Ok(()) }
/// ```
#[track_caller]
pub fn run_on<T, F>(handle: &Handle, query: F) -> impl Future<Output = Result<T>> + Send + use<T, F>
where
    F: Future<Output = Result<T>> + Send + 'static,
    T: Send + 'static,
{
    let own = QueryGuard::new(0);
    let job = spawn(handle, own.wrap(Box::pin(query)));
    async move {
        let _own = own;
        joined(job).await
    }
}

/// Plans `frame` on the CPU lane of `handle`, and returns a stream that runs it there.
///
/// The query begins with the call, before the first poll, and ends with its first error. It runs
/// ahead of the reader by at most `limit` bytes and one batch (besides what its operators hold).
/// A batch counts as all the memory that it keeps alive, which for a part of a larger batch is that
/// of the larger one. The query keeps its place in a limited queue until the stream ends or is
/// dropped.
///
/// It returns when the query is planned. `sql_on` parses it on the lane, too. A deadline of `handle`
/// does not apply to it.
///
/// # Errors
///
/// Those of planning, here; those of the query, in the stream; those of the lane in both: see
/// [the crate](crate#errors). A stream that is cut short ends with an error.
///
/// # Cancel safety
///
/// Dropping the future or the stream cancels the query: its tasks end at their next poll ([when
/// that is](crate#what-it-does-not-do)).
///
/// # Cost
///
/// That of [`collect_on`], and a wake-up of the reader for each batch that it waits for.
///
/// # Examples
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use futures::TryStreamExt;
/// use twolane_datafusion::stream_on;
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use datafusion::logical_expr::LogicalPlanBuilder;
/// # use datafusion::prelude::{DataFrame, lit};
/// # let cpu = twolane::CpuRuntime::new()?;
/// let ctx = SessionContext::new();
/// # let plan = LogicalPlanBuilder::values(vec![vec![lit(1)], vec![lit(2)]])?.build()?;
/// # let frame = DataFrame::new(ctx.state(), plan);
/// let mut batches = stream_on(cpu.handle(), frame, 4 << 20).await?;
/// let mut rows = 0;
/// while let Some(batch) = batches.try_next().await? {
///     rows += batch.num_rows();
/// }
/// assert_eq!(rows, 2);
/// # Ok(()) }
/// ```
#[track_caller]
pub fn stream_on(
    handle: &Handle,
    frame: DataFrame,
    limit: usize,
) -> impl Future<Output = Result<SendableRecordBatchStream>> + Send + use<> {
    stream_of(handle, QueryGuard::new(0), plan_of(frame), limit)
}

pub(crate) type Plan = (Arc<dyn ExecutionPlan>, Arc<TaskContext>);

pub(crate) async fn plan_of(frame: DataFrame) -> Result<Plan> {
    let context = Arc::new(frame.task_ctx());
    let plan = ensure_yields(frame.create_physical_plan().await?)?;
    Ok((plan, context))
}

/// Makes a plan on the lane, and streams it, as one job.
#[track_caller]
pub(crate) fn stream_of<F>(
    handle: &Handle,
    own: QueryGuard,
    plan: F,
    limit: usize,
) -> impl Future<Output = Result<SendableRecordBatchStream>> + Send + use<F>
where
    F: Future<Output = Result<Plan>> + Send + 'static,
{
    let (planned, schema) = oneshot::channel();
    let query = async move {
        let (plan, context) = plan.await?;
        // Not sent: the reader is gone, and the bridge drops this.
        let _ = planned.send(plan.schema());
        execute_stream(plan, context)
    };
    let query = own.wrap(Box::pin(stream::once(query).try_flatten()));
    let query = checked(handle, query);
    let size =
        |batch: &Result<RecordBatch>| batch.as_ref().map_or(0, RecordBatch::get_array_memory_size);
    tracer::install();
    let batches = handle.stream_from_cpu(in_cpu_context(query), limit, size);
    async move {
        let batches = batches.map(move |batch| {
            let _own = &own;
            batch.unwrap_or_else(|cut| Err(external(cut)))
        });
        let mut batches = Box::pin(batches);
        let Ok(schema) = schema.await else {
            let error = batches.next().await.and_then(Result::err);
            return Err(
                error.unwrap_or_else(|| internal_datafusion_err!("neither a plan nor an error"))
            );
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)) as SendableRecordBatchStream)
    }
}

/// The batches of `query` up to its first error, where a reader would drop it. Its last item says
/// so if the result does not count.
fn checked(
    handle: &Handle,
    query: impl Stream<Item = Result<RecordBatch>> + Send + Unpin + 'static,
) -> impl Stream<Item = Result<RecordBatch>> + Send + 'static {
    let handle = handle.clone();
    stream::unfold(Some(query), move |query| {
        let handle = handle.clone();
        async move {
            let mut query = query?;
            let last = query.next().await;
            if let Some(Ok(batch)) = last {
                return Some((Ok(batch), Some(query)));
            }
            let uncertain = until_certain(&handle).await.err();
            let error = uncertain.or_else(|| last?.err())?;
            Some((Err(error), None))
        }
    })
}

/// Spawns a part of a query such that its tasks run on the lane, too.
#[track_caller]
fn spawn<T, F>(handle: &Handle, query: F) -> Task<Result<T>>
where
    F: Future<Output = Result<T>> + Send + 'static,
    T: Send + 'static,
{
    let own = handle.clone();
    let query = async move {
        let result = query.await;
        until_certain(&own).await?;
        result
    };
    tracer::install();
    spawn_job(handle, query)
}

/// Spawns a job such that its tasks run on the lane, too.
#[track_caller]
pub(crate) fn spawn_job<F>(handle: &Handle, job: F) -> Task<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    handle.spawn(in_cpu_context(job))
}

/// Returns if neither lane has ended. If the CPU lane has, it drops this job.
///
/// It asks the I/O lane for an answer: that drops its tasks in any order.
async fn until_certain(handle: &Handle) -> Result<()> {
    let answered = joined(handle.spawn_io(async { Ok(()) })).await;
    if adapters::is_closed(handle) {
        pending::<()>().await;
    }
    answered
}

pub(crate) async fn joined<T>(job: Task<Result<T>>) -> Result<T> {
    job.await.unwrap_or_else(|error| Err(external(error)))
}

fn external(error: impl Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
