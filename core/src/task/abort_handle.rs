//! [`AbortHandle`]: cancels a job, and is not its `Task`. What a cancel does stands at the
//! top of `task/mod.rs`.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use super::Cancel;

/// Cancels a job from elsewhere; see [`Task::abort_handle`](crate::Task::abort_handle).
///
/// It keeps the job's memory, but not the output, which is dropped with the task.
#[derive(Clone)]
pub struct AbortHandle {
    /// `None` if there was nothing left to cancel.
    pub(super) job: Option<Arc<dyn Cancel>>,
}

impl AbortHandle {
    /// Requests the end of the job, as [`Task::abort`](crate::Task::abort) does.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let task = cpu.spawn(std::future::pending::<()>());
    /// let abort = task.abort_handle();
    /// std::thread::spawn(move || abort.abort());
    /// assert!(task.wait().unwrap_err().is_cancelled());
    /// ```
    pub fn abort(&self) {
        if let Some(job) = &self.job {
            job.clone().cancel();
        }
    }

    /// Returns whether the job has ended, as [`Task::is_finished`](crate::Task::is_finished) does.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let task = cpu.spawn(std::future::pending::<()>());
    /// assert!(!task.abort_handle().is_finished());
    /// ```
    pub fn is_finished(&self) -> bool {
        self.job.as_ref().is_none_or(|job| job.has_ended())
    }
}

impl UnwindSafe for AbortHandle {}
impl RefUnwindSafe for AbortHandle {}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortHandle")
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}
