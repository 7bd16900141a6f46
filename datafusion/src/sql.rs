//! [`sql_on`]: a text on a lane.

use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SQLOptions;
use datafusion::prelude::SessionContext;
use twolane_core::Handle;

use crate::query::stream_of;

/// Parses and plans the query `sql` on the CPU lane of `handle`, and returns a stream that runs it
/// there.
///
/// All of it is one job: in a limited queue it takes one place, before it parses, and keeps it until
/// the stream ends or is dropped. It begins with the call, before the first poll, and returns when
/// the query is planned. Of the stream, all is true that [`stream_on`](crate::stream_on) says.
///
/// It takes queries only. [`sql_with_options_on`] takes what its options allow.
///
/// # Errors
///
/// A statement that creates, drops, inserts, copies, or sets an option is refused before it does
/// anything, with a [`DataFusionError::Plan`](datafusion::error::DataFusionError::Plan). Besides,
/// those of parsing and planning, here; those of the query, in the stream; those of the lane in
/// both: see [the crate](crate#errors). A stream that is cut short ends with an error.
///
/// # Cancel safety
///
/// Dropping the future or the stream cancels the query: its tasks end at their next poll ([when
/// that is](crate#what-it-does-not-do)). A query changes nothing, so nothing is left half done.
///
/// # Cost
///
/// That of [`stream_on`](crate::stream_on).
///
/// # Examples
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use futures::TryStreamExt;
/// use twolane_datafusion::sql_on;
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let cpu = twolane::CpuRuntime::new()?;
/// let ctx = SessionContext::new();
/// let sql = "select * from (values (1), (2), (3))";
/// let mut batches = sql_on(&cpu.handle(), &ctx, sql, 4 << 20).await?;
/// let mut rows = 0;
/// while let Some(batch) = batches.try_next().await? {
///     rows += batch.num_rows();
/// }
/// assert_eq!(rows, 3);
///
/// let refused = sql_on(&cpu.handle(), &ctx, "create table t as values (1)", 4 << 20).await;
/// assert!(refused.is_err());
/// # Ok(()) }
/// ```
#[track_caller]
pub fn sql_on(
    handle: &Handle,
    context: &SessionContext,
    sql: &str,
    limit: usize,
) -> impl Future<Output = Result<SendableRecordBatchStream>> + Send + use<> {
    let queries = SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false);
    stream_of(handle, frame(context, sql.to_owned(), queries), limit)
}

/// [`sql_on`] for a statement that `options` allow: [`SQLOptions::new`] allows all.
///
/// DataFusion runs a statement that creates, drops or sets while it plans, and one that inserts
/// or copies in the stream: read the stream to its end.
///
/// # Errors
///
/// As [`sql_on`]. What `options` do not allow is refused before it does anything.
///
/// # Cancel safety
///
/// As [`sql_on`]. But what a statement has changed by then remains, such as files that it has
/// written.
///
/// # Cost
///
/// That of [`sql_on`].
///
/// # Examples
///
/// ```
/// use datafusion::execution::context::SQLOptions;
/// use datafusion::prelude::SessionContext;
/// use futures::TryStreamExt;
/// use twolane_datafusion::sql_with_options_on;
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let cpu = twolane::CpuRuntime::new()?;
/// let ctx = SessionContext::new();
/// let create = "create table t as values (1), (2)";
/// let options = SQLOptions::new();
/// let created = sql_with_options_on(&cpu.handle(), &ctx, create, options, 4 << 20).await?;
/// created.try_collect::<Vec<_>>().await?;
/// assert!(ctx.table_exist("t")?);
/// # Ok(()) }
/// ```
#[track_caller]
pub fn sql_with_options_on(
    handle: &Handle,
    context: &SessionContext,
    sql: &str,
    options: SQLOptions,
    limit: usize,
) -> impl Future<Output = Result<SendableRecordBatchStream>> + Send + use<> {
    stream_of(handle, frame(context, sql.to_owned(), options), limit)
}

fn frame(
    context: &SessionContext,
    sql: String,
    options: SQLOptions,
) -> impl Future<Output = Result<DataFrame>> + Send + use<> {
    let context = context.clone();
    async move { context.sql_with_options(&sql, options).await }
}
