//! [`LaneEngine`]: stages of a query on a CPU lane.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use ballista_core::JobId;
use ballista_core::serde::protobuf::{
    RuntimeStatsReport, ShuffleWritePartition, TaskColumnStats, WindowStateReport,
};
use ballista_executor::execution_engine::{ExecutionEngine, QueryStageExecutor};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::prelude::SessionConfig;
use twolane::Handle;
use twolane_datafusion::run_on;

/// Has the stages of another engine run on a CPU lane.
///
/// [`on_lane`](crate::on_lane) makes one.
///
/// # Errors
///
/// Those of the stage, and those of the lane: a stage that a shutdown cuts short fails, as it does
/// if its queue is full or if it panics
/// ([how](twolane_datafusion#errors)). Ballista's scheduler then decides whether to try again.
///
/// # Cost
///
/// A hop to the lane and back for each stage, not for each batch.
pub struct LaneEngine {
    inner: Arc<dyn ExecutionEngine>,
    handle: Handle,
}

impl LaneEngine {
    /// Wraps `inner`, to run its stages on the CPU lane of `handle`.
    ///
    /// The lane has to be one of [`Backend::Runtime`](twolane::Backend::Runtime).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use ballista_executor::execution_engine::DefaultExecutionEngine;
    /// use twolane::{Backend, CpuRuntime};
    /// use twolane_ballista::{IoClientPool, LaneEngine};
    ///
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let cpu = CpuRuntime::builder().backend(Backend::Runtime).build()?;
    /// let pool = IoClientPool::new(Duration::from_secs(30), &cpu.handle());
    /// let engine = DefaultExecutionEngine::with_client_pool(Arc::new(pool));
    /// let engine = LaneEngine::new(Arc::new(engine), &cpu.handle());
    /// # Ok(()) }
    /// ```
    pub fn new(inner: Arc<dyn ExecutionEngine>, handle: &Handle) -> Self {
        Self {
            inner,
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

impl fmt::Debug for LaneEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneEngine")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
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
