//! [`LaneTracer`]: the tasks of DataFusion are parts of their query, and become jobs where they would run
//! on the I/O runtime.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use Ordering::{Acquire, Release};

use datafusion::common::runtime::{JoinSetTracer, JoinSetTracerError, set_join_set_tracer};
use futures::future::BoxFuture;
use twolane_core::Handle;

use crate::parts::in_query;
use crate::yields::InTask;

type Output = Box<dyn Any + Send>;

static INSTALL: Mutex<()> = Mutex::new(());
static IS_INSTALLED: AtomicBool = AtomicBool::new(false);

/// Has DataFusion's tasks run on the CPU lane, and be counted there.
///
/// DataFusion spawns by `tokio::spawn`. In a job that makes tasks of the I/O runtime, and there
/// the query would compute. DataFusion hands each task to the
/// process's tracer before it spawns it. This one submits the task to the lane of the current
/// handle, and what DataFusion spawns only awaits it.
///
/// It makes the tasks parts of their query, so that
/// [`threads_of_ended_queries`](crate::threads_of_ended_queries) counts those that compute when the
/// query has ended. For the queries of this package that is all: their tasks are on the lane anyway.
///
/// A task is moved if both hold, and runs where it is spawned otherwise:
///
/// - The thread has a current handle ([`Handle::try_current`]): it runs a job, or the process
///   has a default.
/// - The task would be spawned on that handle's I/O runtime. (Inside
///   [`in_cpu_context`](twolane_core::in_cpu_context) it is spawned on the lane anyway.)
///
/// It has the priority of the query. If the lane's queue is limited, the tasks of a query
/// share its permit. Dropping a query cancels its tasks.
///
/// Blocking closures stay on Tokio's blocking pool.
///
/// [`run_on`](crate::run_on) and its like install one, if DataFusion has none. With another tracer their
/// tasks compute on the lane all the same, and that counter lacks them. Install it yourself for
/// [`around`](Self::around), or for queries that you spawn without this package. But a query that the program spawns
/// itself may return a part of its rows if a shutdown drops its tasks; those of `run_on` fail.
///
/// # Panics
///
/// A task that the lane does not take, since its queue is full or it was shut down, unwinds with a
/// [`twolane_core::JoinError`], for DataFusion has no error for it. In a job a queue is never full for its
/// tasks. In a query that the program spawns on its own runtime, by a process default, it may be:
/// give that lane no [`queue_limit`](twolane_core::Builder::queue_limit).
///
/// # Cost
///
/// A job, and a task that awaits it, instead of a task: for each of a query's tasks, of which it
/// has as many as its partitions times its exchanges. The task wakes an I/O thread when it is
/// spawned and when the job ends. The bench `tpch` tells what that is for whole queries.
///
/// # Examples
///
/// A program that spawns its queries itself:
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use twolane_datafusion::LaneTracer;
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// LaneTracer::new().install()?;
/// let cpu = twolane::CpuRuntime::new()?;
/// let ctx = SessionContext::new();
/// let query = cpu.spawn(async move { ctx.sql("select 6 * 7").await?.collect().await });
/// assert_eq!(query.await??[0].num_rows(), 1);
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct LaneTracer {
    before: Option<&'static dyn JoinSetTracer>,
}

impl LaneTracer {
    /// Returns a tracer that does nothing else.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a tracer that hands each task and closure to `tracer` first.
    ///
    /// DataFusion has room for one. If the program has one already, for spans, say, pass it
    /// here instead of to DataFusion. Its span is then entered on the lane.
    ///
    /// # Examples
    ///
    /// ```
    /// use twolane_datafusion::LaneTracer;
    /// # use datafusion::common::runtime::JoinSetTracer;
    /// # use futures::future::BoxFuture;
    /// # use std::any::Any;
    /// # struct Spans;
    /// # impl JoinSetTracer for Spans {
    /// #     fn trace_future(&self, future: BoxFuture<'static, Box<dyn Any + Send>>) -> BoxFuture<'static, Box<dyn Any + Send>> { future }
    /// #     fn trace_block(&self, f: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>) -> Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> { f }
    /// # }
    /// static SPANS: Spans = Spans; // implements `JoinSetTracer`
    /// LaneTracer::around(&SPANS).install().unwrap();
    /// ```
    pub fn around(tracer: &'static dyn JoinSetTracer) -> Self {
        Self {
            before: Some(tracer),
        }
    }

    /// Makes it the tracer of the process.
    ///
    /// # Errors
    ///
    /// If the process has one. Then pass that one to [`around`](Self::around), and install the
    /// result instead of it.
    pub fn install(self) -> Result<(), JoinSetTracerError> {
        // Of several threads one succeeds, and the others then see that it has.
        let _one_at_a_time = INSTALL.lock().unwrap_or_else(PoisonError::into_inner);
        set_join_set_tracer(Box::leak(Box::new(self)))?;
        IS_INSTALLED.store(true, Release);
        Ok(())
    }
}

/// Installs a tracer if DataFusion has none.
pub(crate) fn install() {
    if !IS_INSTALLED.load(Acquire) {
        // An error: another thread has been faster, or it is not one of ours.
        let _ = LaneTracer::new().install();
    }
}

impl JoinSetTracer for LaneTracer {
    fn trace_future(&self, future: BoxFuture<'static, Output>) -> BoxFuture<'static, Output> {
        let future = match self.before {
            Some(before) => before.trace_future(future),
            None => future,
        };
        let future = in_query(future);
        let Some(handle) = lane_of_tasks() else {
            return Box::pin(InTask(future));
        };
        let job = handle.spawn(future);
        Box::pin(async move {
            // Only its unwinding can pass an error on: the output is DataFusion's.
            job.await.unwrap_or_else(|error| error.resume_unwind())
        })
    }

    fn trace_block(
        &self,
        f: Box<dyn FnOnce() -> Output + Send>,
    ) -> Box<dyn FnOnce() -> Output + Send> {
        match self.before {
            Some(before) => before.trace_block(f),
            None => f,
        }
    }
}

/// The lane that is to run what would be spawned here on its I/O runtime.
fn lane_of_tasks() -> Option<Handle> {
    let handle = Handle::try_current().ok()?;
    let runtime = tokio::runtime::Handle::try_current().ok()?;
    (runtime.id() == handle.io().runtime().id()).then_some(handle)
}

impl fmt::Debug for LaneTracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneTracer").finish_non_exhaustive()
    }
}
