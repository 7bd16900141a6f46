//! [`sql_on`]: a text on a lane.

use std::future::poll_fn;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SQLOptions;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use twolane_core::Handle;

use crate::limits::SqlLimits;
use crate::query::{Plan, plan_of, stream_of};

/// Parses and plans the query `sql` on the CPU lane of `handle`, and returns a stream that runs it
/// there.
///
/// All of it is one job: in a limited queue it takes one place, before it parses, and keeps it until
/// the stream ends or is dropped. It begins with the call, before the first poll, and returns when
/// the query is planned. Of the stream, all is true that [`stream_on`](crate::stream_on) says.
///
/// It takes queries only. [`sql_with_options_on`] takes what its options allow.
///
/// # Texts from outside
///
/// A text within the [`SqlLimits`] of the session overflows no stack: parsing and planning have one
/// of their own, whatever
/// [`thread_stack_size`](twolane_core::Builder::thread_stack_size) the lane has, and the plan runs
/// on the 2 MiB that threads have by default, optimized on a quarter of it. This holds for the functions and the
/// sources of tables that come with DataFusion. If a session has views that are deep, or the lane's
/// threads less than 2 MiB, lower the limits. Planning does not yield: the thread is free when it
/// ends, after a drop, too, and the limits bound the time.
///
/// They do not bound what functions allocate: `repeat('x', 2000000000)` does so in planning, and no
/// memory pool counts it. Let a memory limit of the service end the process, or leave such functions
/// out of the session.
///
/// # Errors
///
/// A text or a statement that exceeds [`SqlLimits`] is refused before it is planned, and so is a
/// statement that explains (a plan shows the files of the tables), creates, drops, inserts, copies,
/// or sets an option: before it does anything, with a [`DataFusionError::Plan`](datafusion::error::DataFusionError::Plan). Besides,
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
    stream_of(handle, plan(context, sql.to_owned(), queries, true), limit)
}

/// [`sql_on`] for a statement that `options` allow: [`SQLOptions::new`] allows all.
///
/// DataFusion runs a statement that creates, drops or sets while it plans, and one that inserts
/// or copies in the stream: read the stream to its end.
///
/// # Errors
///
/// As [`sql_on`], but `explain` is allowed. What `options` do not allow is refused before it does
/// anything. The [`SqlLimits`] apply to queries, also to one that is explained, inserted or copied;
/// of other statements to the text only: take those from the program, not from outside.
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
    stream_of(handle, plan(context, sql.to_owned(), options, false), limit)
}

fn plan(
    context: &SessionContext,
    sql: String,
    options: SQLOptions,
    is_query: bool,
) -> impl Future<Output = Result<Plan>> + Send + use<> {
    let context = context.clone();
    let limits = SqlLimits::of(&context);
    let planned = async move {
        let state = context.state();
        let dialect = state.config().options().sql_parser.dialect;
        limits.check_text(&sql, dialect)?;
        let statement = state.sql_to_statement(&sql, &dialect)?;
        if is_query && matches!(statement, Statement::Explain(_)) {
            return plan_err!(
                "EXPLAIN not supported: it shows where the files of the tables are; \
                 `sql_with_options_on` takes it"
            );
        }
        limits.check_statement(&statement)?;
        let plan = state.statement_to_plan(statement).await?;
        options.verify_plan(&plan)?;
        plan_of(context.execute_logical_plan(plan).await?).await
    };
    on_stack(limits.stack(), planned)
}

/// Polls `future` on a stack of so many bytes, whatever the thread has.
fn on_stack<F: Future>(bytes: usize, future: F) -> impl Future<Output = F::Output> {
    let mut future = Box::pin(future);
    poll_fn(move |cx| stacker::maybe_grow(bytes, bytes, || future.as_mut().poll(cx)))
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;

    /// What the parser recurses into without a limit of its own, as often as the limits allow.
    #[test]
    fn a_quarter_of_the_stack_carries_the_parser() {
        let limits = SqlLimits::default();
        let state = SessionContext::new().state();
        let dialect = state.config().options().sql_parser.dialect;
        let n = limits.operators - 3;
        for text in [
            format!("select {}'1'", "interval ".repeat(n)),
            format!("select cast(1 as {}", "array<".repeat(n / 2)),
            format!("{}select 1", "explain ".repeat(n)),
        ] {
            limits.check_text(&text, dialect).unwrap();
            let parsed = async { state.sql_to_statement(&text, &dialect).map(drop) };
            let _ = block_on(on_stack(limits.stack() / 4, parsed));
        }
    }
}
