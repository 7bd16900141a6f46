//! [`LaneEngine`]: stages of a query on a CPU lane.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use ballista_core::JobId;
use ballista_core::serde::protobuf::{
    RuntimeStatsReport, ShuffleWritePartition, TaskColumnStats, WindowStateReport,
};
use ballista_executor::execution_engine::{
    DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor,
};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::prelude::SessionConfig;
use twolane_core::Handle;
use twolane_datafusion::run_on;

use crate::pool::IoClientPool;

/// Ballista's own engine, with its stages on a CPU lane.
pub(crate) struct LaneEngine {
    inner: DefaultExecutionEngine,
    handle: Handle,
}

impl LaneEngine {
    /// The inner engine gives `pool` to each reader of a stage. A reader that opened a connection
    /// itself would panic, for there is no I/O driver, and Ballista takes a task that panicked
    /// for one at its end: the query would lack rows.
    pub(crate) fn new(pool: IoClientPool, handle: &Handle) -> Self {
        Self {
            inner: DefaultExecutionEngine::with_client_pool(Arc::new(pool)),
            handle: handle.clone(),
        }
    }
}

impl ExecutionEngine for LaneEngine {
    fn create_query_stage_exec(
        &self,
        job_id: JobId,
        stage_id: usize,
        task_id: usize,
        global_output_partition_ids: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        work_dir: &str,
        config: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        let stage = self.inner.create_query_stage_exec(
            job_id,
            stage_id,
            task_id,
            global_output_partition_ids,
            plan,
            work_dir,
            config,
        )?;
        let handle = self.handle.clone();
        Ok(Arc::new(LaneStage { stage, handle }))
    }
}

#[derive(Debug)]
struct LaneStage {
    stage: Arc<dyn QueryStageExecutor>,
    handle: Handle,
}

#[async_trait]
impl QueryStageExecutor for LaneStage {
    async fn execute_query_stage(
        &self,
        task_id: usize,
        context: Arc<TaskContext>,
    ) -> Result<Vec<ShuffleWritePartition>> {
        let stage = self.stage.clone();
        let run = async move { stage.execute_query_stage(task_id, context).await };
        run_on(&self.handle, run).await
    }

    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        self.stage.collect_plan_metrics()
    }

    fn collect_runtime_stats_reports(&self) -> Vec<RuntimeStatsReport> {
        self.stage.collect_runtime_stats_reports()
    }

    fn collect_window_state_reports(&self) -> Result<Vec<WindowStateReport>> {
        self.stage.collect_window_state_reports()
    }

    fn collect_column_stats(&self) -> Vec<TaskColumnStats> {
        self.stage.collect_column_stats()
    }
}

impl fmt::Display for LaneStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on the CPU lane", self.stage)
    }
}
