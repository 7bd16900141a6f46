//! The contenders: where a query runs.

use datafusion::arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Handle, Runtime};
use twolane::{CpuRuntime, Priority};
use twolane_datafusion::{LaneTracer, run_on};

/// Where the tables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Memory,
    S3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Contender {
    Plain,
    TwoRuntimes,
    TwoRuntimesNiced,
    Twolane,
    PlainJob,
    ByTheDefault,
}

impl Contender {
    pub fn of(place: Place) -> Vec<Self> {
        let all = [
            Self::Plain,
            Self::TwoRuntimes,
            Self::Twolane,
            Self::TwoRuntimesNiced,
            Self::PlainJob,
            Self::ByTheDefault,
        ];
        match place {
            Place::Memory => all.into(),
            Place::S3 => all[..3].into(),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::TwoRuntimes => "two runtimes",
            Self::TwoRuntimesNiced => "two runtimes, nice 16",
            Self::Twolane => "twolane",
            Self::PlainJob => "a plain job",
            Self::ByTheDefault => "by the default",
        }
    }
}

/// The place that a contender's queries run in.
pub enum Engine {
    Io(Handle),
    Second(Runtime),
    Lane(CpuRuntime, Contender),
}

impl Engine {
    pub fn start(contender: Contender, io: &Handle) -> Self {
        match contender {
            Contender::Plain => Self::Io(io.clone()),
            Contender::TwoRuntimes => Self::second(|| ()),
            // What the threads of a lane have at `Priority::Normal`.
            Contender::TwoRuntimesNiced => Self::second(|| {
                rustix::process::nice(16).expect("a thread may nice itself");
            }),
            lane => {
                let cpu = CpuRuntime::builder().io_handle(io.clone());
                let cpu = cpu.build().expect("a lane");
                if lane == Contender::ByTheDefault {
                    twolane::Handle::set_process_default(Some(cpu.handle().clone()));
                    LaneTracer::new().install().expect("the first tracer");
                }
                Self::Lane(cpu, lane)
            }
        }
    }

    fn second(on_start: impl Fn() + Send + Sync + 'static) -> Self {
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime
            .thread_name("cpu")
            .enable_all()
            .on_thread_start(on_start);
        Self::Second(runtime.build().expect("a second runtime"))
    }

    /// How many jobs of a lane have begun and not ended.
    pub fn running(&self, priority: Priority) -> u64 {
        let Self::Lane(cpu, _) = self else { return 0 };
        let jobs = cpu.handle().with_priority(priority).metrics();
        jobs.running + jobs.suspended
    }

    pub async fn query(
        &self,
        context: &SessionContext,
        sql: &str,
        priority: Priority,
    ) -> Result<Vec<RecordBatch>> {
        let (context, sql) = (context.clone(), sql.to_owned());
        let query = async move { context.sql(&sql).await?.collect().await };
        let lost = |error| DataFusionError::External(error);
        match self {
            Self::Io(io) => io.spawn(query).await.map_err(|e| lost(e.into()))?,
            Self::Second(runtime) => runtime.spawn(query).await.map_err(|e| lost(e.into()))?,
            Self::Lane(cpu, contender) => {
                let cpu = cpu.handle().with_priority(priority);
                match contender {
                    Contender::PlainJob => cpu.spawn(query).await.map_err(|e| lost(e.into()))?,
                    Contender::ByTheDefault => query.await,
                    _ => run_on(&cpu, query).await,
                }
            }
        }
    }
}
