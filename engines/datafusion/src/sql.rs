//! [`sql_on`]: a text on a lane.

use std::panic::Location;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use twolane_core::{Handle, Priority, adapters};

use crate::limits::{SqlLimits, check_rows};
use crate::parts::{InQuery, QueryGuard, in_query, need_stack};
use crate::query::{Plan, joined, plan_of, spawn_job, stream_of};

/// Parses and plans the query `sql` on the CPU lane of `handle`, and returns a stream that runs it
/// there.
///
/// In a limited queue it takes one place, before it parses, and keeps it until the stream ends or is
/// dropped. It begins with the call, before the first poll, and returns when the query is planned. Of
/// the stream, all is true that [`stream_on`](crate::stream_on) says. A job at `Low` parses and plans
/// it, without a place of its own; the query runs at the priority of `handle`.
///
/// It takes queries only. [`sql_with_options_on`] takes what its options allow.
///
/// # Texts from outside
///
/// A text within the [`SqlLimits`] of the session overflows no stack, neither while it is parsed and
/// planned, nor while the query runs or is dropped, whatever
/// [`thread_stack_size`](twolane_core::Builder::thread_stack_size) the lane has. This holds for the
/// functions and the sources of tables that come with DataFusion, in a process whose tracer is a
/// [`LaneTracer`](crate::LaneTracer). A view counts as its name, and has 1 MiB when it runs: define none
/// by such a text. Columns of the result nest at most 64 levels deep, since what reads them recurses
/// where it runs.
///
/// **The time and the memory of planning are not bounded.** DataFusion writes out what a text
/// repeats, and some texts of 200 bytes are planned for hours, with a thread of `Low` and all the
/// memory that they ask for, whether or not the future is dropped. Texts of strangers belong in a
/// process of their own, with a limit of memory.
///
/// As many texts are planned at a time as the lane has threads. Others wait for their turn, among the
/// lane's jobs at `Low`; dropping the future ends the wait, so give it a timeout. If each thread of
/// `Low` plans such a text, no text is planned and no job at `Low` runs until one ends; planned
/// queries, other jobs, and the I/O lane go on. What is dropped gives its place in the queue back at
/// once, though its planning goes on.
///
/// # Errors
///
/// A text that exceeds [`SqlLimits`] is refused before it is parsed, and before it is planned a
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
/// That of [`stream_on`](crate::stream_on), and of a second job. On a lane that computes all the time,
/// planning has the share of a thread at `Low`.
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
/// let mut batches = sql_on(cpu.handle(), &ctx, sql, 4 << 20).await?;
/// let mut rows = 0;
/// while let Some(batch) = batches.try_next().await? {
///     rows += batch.num_rows();
/// }
/// assert_eq!(rows, 3);
///
/// let refused = sql_on(cpu.handle(), &ctx, "create table t as values (1)", 4 << 20).await;
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
    query(handle, context, sql.to_owned(), queries, true, limit)
}

/// [`sql_on`] for a statement that `options` allow: [`SQLOptions::new`] allows all.
///
/// DataFusion runs a statement that creates, drops or sets while it plans, and one that inserts
/// or copies in the stream: read the stream to its end.
///
/// # Errors
///
/// As [`sql_on`], but `explain` is allowed. What `options` do not allow is refused before it does
/// anything. Statements that create, drop or set: take those from the program, not from outside. What
/// creates runs at the priority of `handle`.
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
/// let created = sql_with_options_on(cpu.handle(), &ctx, create, options, 4 << 20).await?;
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
    query(handle, context, sql.to_owned(), options, false, limit)
}

/// What a text is planned to. DataFusion runs a `create` while it makes its frame, so that one is
/// left to the query's own job.
enum Planned {
    Query(Plan),
    Ddl(LogicalPlan),
}

#[track_caller]
fn query(
    handle: &Handle,
    context: &SessionContext,
    sql: String,
    options: SQLOptions,
    is_query: bool,
    limit: usize,
) -> impl Future<Output = Result<SendableRecordBatchStream>> + Send + use<> {
    let limits = SqlLimits::of(context);
    let own = QueryGuard::new(limits.stack());
    let low = adapters::without_deadline(handle).with_priority(Priority::Low);
    let low = adapters::at(&low, Location::caller());
    let context = context.clone();
    let planning = planned(context.clone(), limits, sql, options, is_query);
    let planning = own.wrap(Box::pin(planning));
    let plan = async move {
        // Not before: a job of the lane needs no permit for it.
        let planned = joined(spawn_job(&low, planning)).await?;
        match planned.into_inner() {
            Planned::Query(plan) => Ok(plan),
            Planned::Ddl(plan) => plan_of(context.execute_logical_plan(plan).await?).await,
        }
    };
    stream_of(handle, own, plan, limit)
}

/// A part of its query, as is what it returns: the last to hold that may be any thread.
async fn planned(
    context: SessionContext,
    limits: SqlLimits,
    sql: String,
    options: SQLOptions,
    is_query: bool,
) -> Result<InQuery<Planned>> {
    let state = context.state();
    let dialect = state.config().options().sql_parser.dialect;
    let stack = limits.check(&sql, dialect)?;
    let statement = state.sql_to_statement(&sql, &dialect)?;
    if is_query && matches!(statement, Statement::Explain(_)) {
        return plan_err!(
            "EXPLAIN not supported: it shows where the files of the tables are; \
             `sql_with_options_on` takes it"
        );
    }
    let plan = state.statement_to_plan(statement).await?;
    options.verify_plan(&plan)?;
    if matches!(plan, LogicalPlan::Ddl(_)) {
        return Ok(in_query(Planned::Ddl(plan)));
    }
    let plan = plan_of(context.execute_logical_plan(plan).await?).await?;
    check_rows(&plan.0.schema())?;
    need_stack(stack);
    Ok(in_query(Planned::Query(plan)))
}
