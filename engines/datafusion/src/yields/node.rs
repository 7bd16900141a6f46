//! [`YieldExec`]: the node of a plan whose streams yield.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, SchedulingType};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};

use super::stream::YieldStream;

#[derive(Clone, Debug)]
pub struct YieldExec {
    input: Arc<dyn ExecutionPlan>,
    slices: bool,
    properties: Arc<PlanProperties>,
}

impl YieldExec {
    pub fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::clone(input.properties());
        let properties = properties.with_scheduling_type(SchedulingType::Cooperative);
        Self {
            input,
            slices: false,
            properties: Arc::new(properties),
        }
    }

    /// One that divides batches as well, in place of one that does not.
    pub fn slicing(input: &Arc<dyn ExecutionPlan>) -> Self {
        let node = match input.downcast_ref::<Self>() {
            Some(node) => node.clone(),
            None => Self::new(input.clone()),
        };
        Self {
            slices: true,
            ..node
        }
    }

    /// This node without the one that is its input, if that is one.
    pub fn without_inner(&self) -> Option<Self> {
        let inner: &Self = self.input.downcast_ref()?;
        Some(Self {
            input: inner.input.clone(),
            slices: self.slices || inner.slices,
            properties: self.properties.clone(),
        })
    }
}

impl DisplayAs for YieldExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.slices {
            "YieldExec: divides batches"
        } else {
            "YieldExec"
        })
    }
}

impl ExecutionPlan for YieldExec {
    fn name(&self) -> &str {
        "YieldExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([input]) = <[_; 1]>::try_from(children) else {
            return internal_err!("`YieldExec` has one child");
        };
        let properties = match options.children_properties {
            ChildrenPropertiesMode::Keep => self.properties.clone(),
            ChildrenPropertiesMode::Recompute => Self::new(input.clone()).properties,
        };
        Ok(Arc::new(Self {
            input,
            slices: self.slices,
            properties,
        }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        Ok(Box::pin(YieldStream::new(input, self.slices)))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(inputs[0].clone())
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
