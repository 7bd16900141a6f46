//! The contenders: where a query runs, and what limits how many do.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use twolane::{CpuRuntime, Priority};
use twolane_benches::cores;
use twolane_datafusion::run_on;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Contender {
    OneRuntime,
    TwoRuntimes,
    TwoSemaphore,
    TwoSemaphoreNiced,
    Unticked,
    Twolane,
}

impl Contender {
    pub const ALL: [Self; 6] = [
        Self::OneRuntime,
        Self::TwoRuntimes,
        Self::TwoSemaphore,
        Self::TwoSemaphoreNiced,
        Self::Unticked,
        Self::Twolane,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::OneRuntime => "one_runtime",
            Self::TwoRuntimes => "two_runtimes",
            Self::TwoSemaphore => "two_semaphore",
            Self::TwoSemaphoreNiced => "two_semaphore_nice16",
            Self::Unticked => "unticked",
            Self::Twolane => "twolane",
        }
    }
}

/// The place that a contender's queries run in.
pub enum Engine {
    Io,
    Second(Runtime),
    Limited(Runtime, Arc<Semaphore>),
    Lane(CpuRuntime),
}

impl Engine {
    pub fn start(contender: Contender, io: &Handle) -> Self {
        let semaphore = || Arc::new(Semaphore::new(cores()));
        match contender {
            Contender::OneRuntime => Self::Io,
            Contender::TwoRuntimes => Self::Second(second(|| ())),
            Contender::TwoSemaphore => Self::Limited(second(|| ()), semaphore()),
            // What the threads of a lane have at `Priority::Normal`.
            Contender::TwoSemaphoreNiced => {
                let nice = || {
                    rustix::process::nice(16).expect("a thread may nice itself");
                };
                Self::Limited(second(nice), semaphore())
            }
            Contender::Twolane | Contender::Unticked => {
                if contender == Contender::Unticked {
                    giveway::tick_each(None).expect("none is in its range");
                }
                let cpu = CpuRuntime::builder().queue_limit(Priority::Normal, cores());
                Self::Lane(cpu.io_handle(io.clone()).build().expect("a lane"))
            }
        }
    }

    /// The rows of `sql`, as they are sent. All that computes is in one place.
    pub async fn answer(&self, context: &SessionContext, sql: String) -> Result<Bytes> {
        let query = answer(context.clone(), sql);
        let lost = |error| DataFusionError::External(error);
        match self {
            Self::Io => query.await,
            Self::Second(runtime) => runtime.spawn(query).await.map_err(|e| lost(e.into()))?,
            Self::Limited(runtime, semaphore) => {
                let _permit = semaphore.acquire().await.map_err(|e| lost(e.into()))?;
                runtime.spawn(query).await.map_err(|e| lost(e.into()))?
            }
            Self::Lane(cpu) => {
                let cpu = cpu.handle().clone();
                // Held beside the query, which needs no other one.
                let _permit = cpu.reserve().await.map_err(|e| lost(e.into()))?;
                run_on(&cpu.without_limit(), query).await
            }
        }
    }
}

fn second(on_start: impl Fn() + Send + Sync + 'static) -> Runtime {
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.thread_name("cpu").enable_all();
    let runtime = runtime.on_thread_start(on_start).build();
    runtime.expect("a second runtime")
}

async fn answer(context: SessionContext, sql: String) -> Result<Bytes> {
    let frame = context.sql(&sql).await?;
    let mut writer = StreamWriter::try_new(Vec::new(), frame.schema().as_arrow())?;
    for batch in frame.collect().await? {
        writer.write(&batch)?;
    }
    Ok(writer.into_inner()?.into())
}
