//! [`EnsureYields`]: the operators of a query yield by time.
//!
//! A stream can end, and other tasks can have their turn, only when its poll returns `Pending`.
//! An operator returns it if one of its inputs does. So it is enough that each stream that a task
//! of the query reads from returns `Pending` once per slice: a [`YieldExec`] on each edge of the
//! plan whose lower end may compute for long without reading from another such edge.
//!
//! An operator that gives at most one batch for each one that it reads, and reads it when it is
//! asked, needs none of its own: there is one below it.

mod in_task;
mod node;
mod slices;
mod stream;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, EmissionType, EvaluationType, replace_children_if_necessary,
};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};

pub(crate) use in_task::InTask;
use node::YieldExec;

/// Has a query yield after 5 ms of computing, so that it ends soon after it is dropped.
///
/// DataFusion's operators yield once for each 128 batches that a partition of a table or an
/// exchange has given. A join that makes many rows out of few batches, or an aggregate, computes
/// for minutes between two yields: dropped meanwhile, it computes on, and other tasks wait.
/// This rule puts a node `YieldExec` above tables, joins, aggregates, sorts, windows and
/// exchanges. The node yields to the lane if 5 ms have passed since its task was last resumed.
/// On the larger side of a hash or nested loop join it also hands on parts of a batch, if a whole
/// one takes the join longer than that.
///
/// [`collect_on`](crate::collect_on), [`stream_on`](crate::stream_on) and `sql_on` apply it to
/// each query. Add it to the session for a query that you give to [`run_on`](crate::run_on), or run
/// on another runtime. Both together are no more than one.
///
/// It does not divide what an operator does in one call: to build the hash table of a join's
/// smaller side, to finish an aggregate or a window's
/// partition, to run a UDF on one batch.
/// [`threads_of_ended_queries`](crate::threads_of_ended_queries) shows the threads that still do when their query has ended.
///
/// # Cost
///
/// For each batch, at each node, two virtual calls and a look at the clock, some 50 ns. The bench
/// `dropped` compares whole queries with and without.
///
/// # Limits
///
/// It is to be the last rule of the session. `EXPLAIN` shows the nodes. DataFusion's protobuf
/// format does not know them: do not add the rule to a session whose plans go to other processes.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use datafusion::execution::SessionStateBuilder;
/// use datafusion::prelude::SessionContext;
/// use twolane_datafusion::{EnsureYields, run_on};
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let cpu = twolane::CpuRuntime::new()?;
/// let state = SessionStateBuilder::new()
///     .with_default_features()
///     .with_physical_optimizer_rule(Arc::new(EnsureYields::new()))
///     .build();
/// let ctx = SessionContext::new_with_state(state);
/// let query = async move { ctx.sql("select 6 * 7").await?.collect().await };
/// assert_eq!(run_on(cpu.handle(), query).await?[0].num_rows(), 1);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct EnsureYields {
    _private: (),
}

impl EnsureYields {
    /// Returns the rule.
    pub fn new() -> Self {
        Self::default()
    }
}

impl PhysicalOptimizerRule for EnsureYields {
    fn name(&self) -> &str {
        "EnsureYields"
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        ensure_yields(plan)
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Of a plan that has some already, it keeps those.
pub(crate) fn ensure_yields(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let yielding = plan.transform_up(|plan| {
        if let Some(node) = plan.downcast_ref::<YieldExec>() {
            return Ok(match node.without_inner() {
                Some(node) => Transformed::yes(Arc::new(node)),
                None => Transformed::no(plan),
            });
        }
        let plan = with_sliced_input(plan)?;
        Ok(match computes_between_reads(&plan) {
            true => Transformed::yes(Arc::new(YieldExec::new(plan))),
            false => Transformed::yes(plan),
        })
    });
    Ok(yielding?.data)
}

fn computes_between_reads(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let properties = plan.properties();
    let hands_on = plan.children().len() == 1
        && properties.evaluation_type == EvaluationType::Lazy
        && properties.emission_type == EmissionType::Incremental
        && matches!(
            plan.cardinality_effect(),
            CardinalityEffect::Equal | CardinalityEffect::LowerEqual
        );
    !hands_on
}

/// A join whose filter drops all rows, or which only marks them, works on one batch of its right
/// side until that is done: there, its batches are divided.
fn with_sliced_input(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let is_join = plan.is::<HashJoinExec>() || plan.is::<NestedLoopJoinExec>();
    let [left, right] = plan.children()[..] else {
        return Ok(plan);
    };
    if !is_join {
        return Ok(plan);
    }
    let right = Arc::new(YieldExec::slicing(right)) as Arc<dyn ExecutionPlan>;
    let children = vec![left.clone(), right];
    replace_children_if_necessary(plan, children)
}
