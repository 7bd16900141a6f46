//! A cluster of four processes, and its client in this one.

use std::path::Path;
use std::time::{Duration, Instant};

use ballista::prelude::{SessionConfigExt, SessionContextExt};
use datafusion::arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use twolane_tpch::queries;
use twolane_tpch::tables::Access;

use crate::common::{Common, Policy};
use crate::executor::VCORES;
use crate::process::{Process, Role};
use crate::proxy::Seen;
use crate::scheduler::Question;
use crate::{executor, scheduler};

pub const EXECUTORS: usize = 3;
/// For the cluster's start.
const START: Duration = Duration::from_secs(60);
/// Of a cluster that loses an executor: longer than Ballista's busy executors go without a poll
/// (5 s).
pub const SHORT_TIMEOUT_SECONDS: u64 = 7;
/// Ballista's default.
pub const TIMEOUT_SECONDS: u64 = 180;

pub struct Plan {
    pub policy: Policy,
    pub is_ours: bool,
    pub timeout_seconds: u64,
    /// Ballista's default. Its adaptive planner has no place yet for the results of a stage that
    /// it runs again (apache/datafusion-ballista#1986): a query that has lost an executor's
    /// results never ends, whichever the executors are.
    pub is_adaptive: bool,
    pub access: Access,
}

pub struct Cluster {
    // The client before those that it is connected to, and the folder last.
    runtime: Runtime,
    context: SessionContext,
    scheduler: Process,
    executors: Vec<Process>,
    /// The ports of their Flight services.
    pub flights: Vec<u16>,
    _folder: TempDir,
}

pub type Rows = Vec<String>;

/// The batches' rows, to compare.
pub fn rows(batches: &[RecordBatch]) -> Result<Rows, String> {
    queries::rows(batches).map_err(|error| error.to_string())
}

impl Cluster {
    pub fn start(plan: &Plan) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let common = Common {
            policy: plan.policy,
            access: plan.access.clone(),
        };
        let role = Role::Scheduler(scheduler::Role {
            common: common.clone(),
            timeout_seconds: plan.timeout_seconds,
        });
        let mut scheduler = Process::start("scheduler", &role, folder.path())?;
        let port: u16 = scheduler.hear()?;
        let (mut executors, mut flights) = (Vec::new(), Vec::new());
        for nth in 1..=EXECUTORS {
            let (mut executor, id) = (None, format!("executor-{nth}"));
            let work = work_folder(folder.path(), &id)?;
            let role = Role::Executor(executor::Role {
                common: common.clone(),
                id: id.clone(),
                scheduler: port,
                folder: work,
                is_ours: plan.is_ours,
            });
            let started = executor.insert(Process::start(&id, &role, folder.path())?);
            flights.push(started.hear()?);
            executors.extend(executor);
        }
        let runtime = runtime().map_err(|error| error.to_string())?;
        let context = runtime.block_on(client(port, plan));
        let mut cluster = Self {
            runtime,
            context: context.map_err(|error| error.to_string())?,
            scheduler,
            executors,
            flights,
            _folder: folder,
        };
        cluster.wait_for_executors()?;
        Ok(cluster)
    }

    fn wait_for_executors(&mut self) -> Result<(), String> {
        let begin = Instant::now();
        while self.seen()?.gaps.len() < EXECUTORS {
            self.check()?;
            if begin.elapsed() > START {
                return Err(format!("executors are not there after {START:?}"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// An error if a process has ended or panicked.
    pub fn check(&mut self) -> Result<(), String> {
        self.scheduler.check()?;
        self.executors.iter_mut().try_for_each(Process::check)
    }

    /// What the proxy saw since [`Self::forget`].
    pub fn seen(&mut self) -> Result<Seen, String> {
        self.scheduler.ask(&Question::Seen)
    }

    pub fn forget(&mut self) -> Result<(), String> {
        self.scheduler.ask(&Question::Forget)
    }

    pub fn kill_executor(&mut self, nth: usize) -> Result<(), String> {
        self.executors.remove(nth).kill()
    }

    /// Begins a query.
    pub fn begin(&self, sql: &'static str) -> JoinHandle<DataFusionResult<Vec<RecordBatch>>> {
        let context = self.context.clone();
        self.runtime
            .spawn(async move { context.sql(sql).await?.collect().await })
    }

    /// The result of a query that ends within `limit`; else `None`.
    pub fn end(
        &self,
        query: JoinHandle<DataFusionResult<Vec<RecordBatch>>>,
        limit: Duration,
    ) -> Option<DataFusionResult<Vec<RecordBatch>>> {
        let ended = async { tokio::time::timeout(limit, query).await };
        let batches = self.runtime.block_on(ended).ok()?;
        let lost = |error: tokio::task::JoinError| Err(DataFusionError::External(error.into()));
        Some(batches.unwrap_or_else(lost))
    }

    pub fn query(
        &mut self,
        sql: &'static str,
        limit: Duration,
    ) -> Result<Vec<RecordBatch>, String> {
        let batches = self.end(self.begin(sql), limit);
        let batches = batches.ok_or_else(|| self.error(&format!("no end after {limit:?}"), sql))?;
        batches.map_err(|error| self.error(&error.to_string(), sql))
    }

    /// With what the processes say.
    pub fn error(&self, why: &str, sql: &str) -> String {
        let processes = self.executors.iter().chain([&self.scheduler]);
        let said: String = processes.map(Process::said).collect();
        format!("{why}: {sql}{said}")
    }
}

fn work_folder(folder: &Path, id: &str) -> Result<std::path::PathBuf, String> {
    let work = folder.join(id);
    std::fs::create_dir(&work).map_err(|error| error.to_string())?;
    Ok(work)
}

/// Unoptimized, the planners' frames are large.
fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(8 << 20)
        .enable_all()
        .build()
}

async fn client(port: u16, plan: &Plan) -> DataFusionResult<SessionContext> {
    let config = SessionConfig::new_with_ballista();
    let config = config
        .with_target_partitions(EXECUTORS * VCORES)
        .with_ballista_adaptive_query_planner(plan.is_adaptive);
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .build();
    let url = format!("df://127.0.0.1:{port}");
    let context = SessionContext::remote_with_state(&url, state).await?;
    let access = &plan.access;
    access.register_store(&context.runtime_env(), access.builder().build()?);
    access.register_tables(&context).await?;
    Ok(context)
}

/// The rows of plain DataFusion, in this process.
pub fn plain(access: &Access, queries: &[&'static str]) -> DataFusionResult<Vec<Rows>> {
    runtime()?.block_on(async {
        let context = SessionContext::new();
        access.register_store(&context.runtime_env(), access.builder().build()?);
        access.register_tables(&context).await?;
        let mut rows = Vec::new();
        for sql in queries.iter().copied() {
            let context = context.clone();
            let query = tokio::spawn(async move { context.sql(sql).await?.collect().await });
            rows.push(queries::rows(&query.await.expect("no panic")?)?);
        }
        Ok(rows)
    })
}
