//! A fault of Ballista's scheduler, without an executor of ours: [`UPSTREAM.md`](../../UPSTREAM.md)
//! describes it.
//!
//! The scheduler is Ballista's own. The executors are puppets with one vcore each: they answer its
//! calls, and the test decides what they report.
//!
//! The tests pass while the fault is there. One fails when a new Ballista has mended it; its
//! message says what to do then. (An ignored test would not be run.)
//!
//! ```text
//! cargo test -p twolane-ballista --test upstream_push -- --nocapture   # with the scheduler's log
//! ```

mod puppet;

use std::sync::Arc;
use std::time::Duration;

use ballista::prelude::SessionConfigExt;
use ballista_core::JobId;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::Result;
use ballista_core::serde::BallistaCodec;
use ballista_core::serde::protobuf::job_status::Status;
use ballista_scheduler::cluster::{BallistaCluster, ClusterState};
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::metrics::SchedulerMetricsCollector;
use ballista_scheduler::scheduler_server::SchedulerServer;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::empty::EmptyTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use puppet::{Puppet, Task};

type Server = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// Of a test: each wait is for an event.
const LIMIT: Duration = Duration::from_secs(120);

/// The survivor of a kill reports that it has cancelled its task, and is idle. Yet the scheduler
/// offers it nothing, neither for the query nor for the next one: the vcore of the task is gone.
#[tokio::test]
async fn pushed_tasks_of_a_rolled_back_stage_keep_their_vcores() {
    let hang = async {
        let mut cluster = Cluster::start(TaskSchedulingPolicy::PushStaged).await;
        let (job, mut survivor) = cluster.lose_an_executor().await;
        for _ in 0..3 {
            survivor.beat(&cluster.scheduler).await;
            cluster.settle().await;
        }
        let next = cluster.submit().await;
        cluster.settle().await;

        let mended = "Ballista gives the vcores of a rolled back stage back: \
            delete this test, UPSTREAM.md and the warnings that name it";
        assert_ne!(cluster.waiting(&job).await, 0, "{mended}");
        assert_ne!(cluster.waiting(&next).await, 0, "{mended}");
        assert!(survivor.is_idle(), "{mended}");
        assert!(matches!(cluster.status(&job).await, Status::Running(_)));

        // It is that vcore: given back by hand, it lets both queries end.
        let manager = &cluster.scheduler.state.executor_manager;
        let vcore = vec![(survivor.id.clone(), 1)];
        manager.unbind_tasks(vcore).await.unwrap();
        survivor.report(&cluster.scheduler, vec![]).await;
        for _ in 0..6 {
            cluster.run_one(&mut survivor).await;
        }
        cluster.assert_successful(&job).await;
        cluster.assert_successful(&next).await;
    };
    tokio::time::timeout(LIMIT, hang).await.expect("in time");
}

/// An executor that polls says itself how many vcores it has.
#[tokio::test]
async fn polled_tasks_of_a_rolled_back_stage_run_again() {
    let ends = async {
        let mut cluster = Cluster::start(TaskSchedulingPolicy::PullStaged).await;
        let (job, mut survivor) = cluster.lose_an_executor().await;
        for _ in 0..3 {
            cluster.run_one(&mut survivor).await;
        }
        cluster.assert_successful(&job).await;
    };
    tokio::time::timeout(LIMIT, ends).await.expect("in time");
}

struct Cluster {
    scheduler: Server,
    state: Arc<dyn ClusterState>,
    submitted: UnboundedReceiver<()>,
    cancelled: UnboundedReceiver<()>,
}

impl Cluster {
    async fn start(policy: TaskSchedulingPolicy) -> Self {
        puppet::log_to_stderr();
        let config = SchedulerConfig {
            scheduling_policy: policy,
            expire_dead_executor_interval_seconds: 1,
            ..Default::default()
        };
        let cluster = BallistaCluster::new_from_config(&config).await.unwrap();
        let state = cluster.cluster_state();
        let (submits, submitted) = unbounded_channel();
        let (cancels, cancelled) = unbounded_channel();
        let mut scheduler = Server::new(
            "127.0.0.1:0".to_owned(),
            cluster,
            BallistaCodec::default(),
            Arc::new(config),
            Arc::new(Events { submits, cancels }),
        );
        scheduler.init().await.unwrap();
        Self {
            scheduler,
            state,
            submitted,
            cancelled,
        }
    }

    /// An executor has run the first stage, which is one task, and has one of the two tasks of the
    /// second stage, when it falls silent. The survivor, which has the other one, is told to cancel
    /// it, and does so.
    async fn lose_an_executor(&mut self) -> (JobId, Puppet) {
        let mut lost = Puppet::start("lost", &self.scheduler).await;
        let job = self.submit().await;
        let first = lost.take(&self.scheduler).await;
        let mut survivor = Puppet::start("survivor", &self.scheduler).await;
        lost.report(&self.scheduler, vec![first.done()]).await;
        self.settle().await;
        let _dies_with_it: Task = lost.take(&self.scheduler).await;
        let cancelled = survivor.take(&self.scheduler).await;

        self.state
            .save_executor_heartbeat(lost.kill())
            .await
            .unwrap();
        survivor.told_to_cancel(&cancelled).await;
        survivor
            .report(&self.scheduler, vec![cancelled.killed()])
            .await;
        self.settle().await;
        (job, survivor)
    }

    async fn submit(&mut self) -> JobId {
        let config = SessionConfig::new_with_ballista()
            .with_target_partitions(2)
            // It does not recover from a loss (apache/datafusion-ballista#1986).
            .with_ballista_adaptive_query_planner(false);
        let context = SessionContext::new_with_config(config);
        let schema = Schema::new(vec![Field::new("n", DataType::Int64, false)]);
        let table = EmptyTable::new(Arc::new(schema)).with_partitions(2);
        context.register_table("numbers", Arc::new(table)).unwrap();
        let sql = "select n, count(*) from numbers group by n";
        let plan = context.sql(sql).await.unwrap().into_optimized_plan();
        let (context, plan) = (Arc::new(context), plan.unwrap());
        let job = self.scheduler.submit_job("", context, &plan, None).await;
        self.submitted.recv().await.unwrap();
        job.unwrap()
    }

    /// Until the scheduler has handled all events so far, and those that they caused.
    async fn settle(&mut self) {
        for _ in 0..4 {
            let no_such_job = JobId::new("settles");
            self.scheduler.cancel_job(no_such_job).await.unwrap();
            self.cancelled.recv().await.unwrap();
        }
    }

    /// The number of partitions whose tasks wait for an executor.
    async fn waiting(&self, job: &JobId) -> usize {
        let tasks = &self.scheduler.state.task_manager;
        tasks.get_available_task_count(job).await.unwrap()
    }

    async fn status(&self, job: &JobId) -> Status {
        let tasks = &self.scheduler.state.task_manager;
        let status = tasks.get_job_status(job).await.unwrap().unwrap();
        status.status.unwrap()
    }

    async fn run_one(&mut self, puppet: &mut Puppet) {
        let task = puppet.take(&self.scheduler).await;
        puppet.report(&self.scheduler, vec![task.done()]).await;
        self.settle().await;
    }

    async fn assert_successful(&self, job: &JobId) {
        let status = self.status(job).await;
        assert!(matches!(status, Status::Successful(_)), "{status:?}");
    }
}

/// What the scheduler's event loop has handled.
struct Events {
    submits: UnboundedSender<()>,
    cancels: UnboundedSender<()>,
}

impl SchedulerMetricsCollector for Events {
    fn record_submitted(&self, _: &JobId, _: u64, _: u64) {
        let _ = self.submits.send(());
    }

    fn record_cancelled(&self, _: &JobId) {
        let _ = self.cancels.send(());
    }

    fn record_completed(&self, _: &JobId, _: u64, _: u64) {}

    fn record_failed(&self, _: &JobId, _: u64, _: u64) {}

    fn set_pending_tasks_queue_size(&self, _: u64) {}

    fn gather_metrics(&self) -> Result<Option<(Vec<u8>, String)>> {
        Ok(None)
    }
}
