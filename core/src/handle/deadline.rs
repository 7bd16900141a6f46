//! The deadline of a handle's jobs.

use std::time::Instant;

use super::Handle;

impl Handle {
    /// Returns a handle whose jobs have a deadline: a time after which they are of no use.
    ///
    /// The lane compares the deadline when a job's turn comes and, if the job is a future,
    /// before each later poll. A job past its deadline does not run, and its task returns
    /// [`JoinErrorKind::Expired`](crate::JoinErrorKind::Expired). A closure that already runs sees
    /// the deadline through
    /// [`JobContext::checkpoint`](crate::JobContext::checkpoint).
    ///
    /// There is no timer. The awaiter of an expired job gets the error when the job's turn
    /// comes, or at once if the deadline passed before the submission. If the awaiter needs an
    /// answer at the deadline itself, put Tokio's `timeout_at` around the task: it drops the
    /// task, and so aborts the job.
    ///
    /// Of two deadlines the earlier one holds. A deadline is real time, also while Tokio's clock
    /// is paused. It applies to the jobs and permits of this handle, and not to what those jobs
    /// submit themselves, to [`spawn_io`](Self::spawn_io) or to streams. Nor does it travel
    /// with [`enter`](Self::enter) and
    /// [`set_process_default`](Self::set_process_default): the current handle has none. A
    /// `tokio::time::Instant` is turned into this one with `into_std`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use std::time::{Duration, Instant};
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let received = Instant::now(); // ... and the client waits for a second
    /// let in_time = cpu.handle().with_deadline(received + Duration::from_secs(1));
    /// assert_eq!(in_time.spawn_cpu(|| 42).await.unwrap(), 42);
    /// let late = in_time.with_deadline(received);
    /// let error = late.spawn_cpu(|| 42).await.unwrap_err();
    /// assert_eq!(error.kind(), twolane::JoinErrorKind::Expired);
    /// # }
    /// ```
    pub fn with_deadline(&self, deadline: Instant) -> Self {
        let earlier = self.deadline.map_or(deadline, |own| own.min(deadline));
        Self {
            level: self.level.clone(),
            deadline: Some(earlier),
        }
    }

    /// Returns a handle whose jobs have no [deadline](Self::with_deadline).
    ///
    /// For jobs that others wait for, whatever the time of the request that began them.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use std::time::Instant;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let late = cpu.handle().with_deadline(Instant::now());
    /// assert_eq!(late.without_deadline().spawn_cpu(|| 42).await.unwrap(), 42);
    /// # }
    /// ```
    pub fn without_deadline(&self) -> Self {
        Self::new(self.level.clone())
    }
}
