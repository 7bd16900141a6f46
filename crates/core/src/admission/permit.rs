//! [`Permit`]: the right to submit one job. [`Reserve`]: the wait for it. (A job that has taken one
//! gives it back by `release_permit`, in `task/work.rs`.)

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::sync::AcquireError;
use tokio::task::coop;

use super::{Admitted, Entry};
use crate::error::{JoinError, JoinErrorKind};
use crate::lane::Submitter;
use crate::limits::{Charge, Limits};
use crate::task::{
    Cancelled, Event, Extras, FutureWork, JobContext, Submit, Task, Work, block_on, ticker,
};

/// The right to submit one job, not yet used.
///
/// Returned by [`Handle::reserve`](crate::Handle::reserve) and
/// [`Handle::try_reserve`](crate::Handle::try_reserve). It submits through the handle that
/// it came from. If it is dropped unused, it goes to the next waiter.
///
/// Of a [`queue_limit`](crate::Builder::queue_limit) it has its place, so its job is not refused.
/// With a [`max_wait`](crate::Builder::max_wait), a permit of `try_reserve` counts in time once its
/// job comes: if the lane is full by then, that job is refused. One of `reserve` is not, unless its
/// handle has a [key](crate::Handle::with_key).
///
/// What needs no permit of its own, such as a stream, is limited by a permit that is held beside
/// it.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use twolane::{CpuRuntime, JoinError, Permit, Priority};
/// let cpu = CpuRuntime::builder().queue_limit(Priority::Normal, 8).build().unwrap();
/// // It may pass through other functions before there is a job.
/// async fn compress(permit: Permit, body: Vec<u8>) -> Result<usize, JoinError> {
///     permit.spawn_cpu(move || body.len() / 2).await
/// }
/// let permit = cpu.handle().try_reserve().unwrap();
/// assert_eq!(compress(permit, vec![0; 10]).await.unwrap(), 5);
/// # }
/// ```
#[must_use = "it is one of the queue's permits, and others wait for it: spawn by it"]
pub struct Permit {
    pub(crate) submitter: Submitter,
    /// With the charge of its job.
    extras: Extras,
}

impl Permit {
    pub(crate) fn try_new(submitter: &Submitter) -> Result<Self, JoinError> {
        let entry = Entry::new(submitter, submitter.site);
        Self::of(super::admit(submitter, Some(entry)), submitter.clone())
    }

    fn of(admitted: Admitted, submitter: Submitter) -> Result<Self, JoinError> {
        let extras = admitted.inspect_err(|_| submitter.count(Event::Rejected))?;
        Ok(Self { submitter, extras })
    }

    /// The permit for the pump of a stream. A deadline ends here: one that passes later would cut
    /// the stream.
    #[track_caller]
    pub(crate) fn for_stream(self) -> Result<Self, JoinError> {
        let Self { submitter, extras } = self;
        let entry = Entry::new(&submitter, submitter.site_or_caller());
        let admitted = super::admit_by_permit(&submitter, &extras, entry);
        let permit = Self::of(admitted.map(|()| extras), submitter.without_deadline())?;
        permit.extras.charge().into_iter().for_each(Charge::reserve);
        Ok(permit)
    }

    /// Sets a time after which the job is of no use.
    ///
    /// As [`Handle::with_deadline`](crate::Handle::with_deadline), for the job of this permit.
    /// Of two deadlines the earlier one holds.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use std::time::{Duration, Instant};
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let received = Instant::now(); // ... and the client waits for a second
    /// let permit = cpu.handle().reserve().await.unwrap();
    /// let task = permit.with_deadline(received + Duration::from_secs(1)).spawn_cpu(|| 42);
    /// assert_eq!(task.await.unwrap(), 42);
    /// # }
    /// ```
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.submitter = self.submitter.with_deadline(deadline);
        self
    }

    /// Submits a closure with this permit.
    ///
    /// Otherwise the same as [`Handle::spawn_cpu`](crate::Handle::spawn_cpu).
    ///
    /// # Errors
    ///
    /// None here. The task returns what went wrong: [`JoinError`]. Also that the lane was shut down
    /// before this call, or that it is full in time, for a permit of
    /// [`try_reserve`](crate::Handle::try_reserve).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let permit = cpu.handle().reserve().await.unwrap();
    /// assert_eq!(permit.spawn_cpu(|| 6 * 7).await.unwrap(), 42);
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn_cpu<F, T>(self, f: F) -> Task<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.closure(f)
    }

    /// Submits a closure with this permit.
    ///
    /// Otherwise the same as [`Handle::spawn_cpu_with`](crate::Handle::spawn_cpu_with).
    ///
    /// # Errors
    ///
    /// The same as for [`spawn_cpu`](Self::spawn_cpu).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let permit = cpu.handle().reserve().await.unwrap();
    /// permit.spawn_cpu_with(|job| job.checkpoint()).await.unwrap();
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn_cpu_with<F, T>(self, f: F) -> Task<T>
    where
        F: FnOnce(&JobContext) -> Result<T, Cancelled> + Send + 'static,
        T: Send + 'static,
    {
        self.closure_with(f)
    }

    /// Submits a future with this permit.
    ///
    /// Otherwise the same as [`Handle::spawn`](crate::Handle::spawn).
    ///
    /// # Errors
    ///
    /// The same as for [`spawn_cpu`](Self::spawn_cpu).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let permit = cpu.handle().reserve().await.unwrap();
    /// assert_eq!(permit.spawn(async { 6 * 7 }).await.unwrap(), 42);
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.submit(FutureWork::new(future))
    }
}

impl Submit for Permit {
    #[track_caller]
    fn submit<W: Work>(self, work: W) -> Task<W::Output> {
        let Self { submitter, extras } = self;
        super::enter(&submitter, work, extras, |extras, entry| {
            super::admit_by_permit(&submitter, extras, entry)
        })
    }
}

debug_by_name!(Permit, priority: |it: &Self| it.submitter.priority, deadline: |it: &Self| it.submitter.deadline, key: |it: &Self| it.submitter.key.clone());

/// Waits for room, and looks now and then whether it has come with time.
async fn acquire(limits: Arc<Limits>, charge: Charge) -> Result<Charge, AcquireError> {
    let mut acquire = pin!(charge.acquire());
    let Some(every) = limits.max_wait() else {
        return acquire.await;
    };
    loop {
        let in_time = ticker::in_time(ticker::timers(), every, acquire.as_mut());
        match in_time.await {
            Some(charge) => return charge,
            None => limits.look(),
        }
    }
}

type Acquire = dyn Future<Output = Result<Charge, AcquireError>> + Send + Sync;

/// A future that waits for a permit of the queue.
///
/// Returned by [`Handle::reserve`](crate::Handle::reserve). It resolves to a [`Permit`].
///
/// # Errors
///
/// [`JoinErrorKind::Shutdown`](crate::JoinErrorKind::Shutdown) if the lane is shut down, also
/// during the wait;
/// [`JoinErrorKind::IoRuntimeGone`](crate::JoinErrorKind::IoRuntimeGone) if its I/O runtime is
/// gone.
///
/// # Panics
///
/// Polling it again after it is ready panics.
///
/// # Cancel safety
///
/// Dropping it gives up its position among the waiters. No permit is lost. A wait that
/// was dropped counts in [`Metrics::rejected`](crate::metrics::Metrics).
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use std::time::Duration;
/// use twolane::{CpuRuntime, Priority};
/// use twolane::future::Reserve;
/// let cpu = CpuRuntime::builder().queue_limit(Priority::Normal, 1).build().unwrap();
/// let permit = cpu.handle().reserve().await.unwrap();
/// // It is `Unpin`: no `pin!` is needed to wait for a while, and go on later.
/// let mut second: Reserve = cpu.handle().reserve();
/// assert!(tokio::time::timeout(Duration::from_millis(1), &mut second).await.is_err());
/// drop(permit);
/// second.await.unwrap().spawn_cpu(|| 42).await.unwrap();
/// # }
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct Reserve {
    submitter: Submitter,
    /// Boxed, so that `Reserve` is `Unpin`. Most of them never wait.
    waits: Option<Pin<Box<Acquire>>>,
    is_done: bool,
}

impl Reserve {
    pub(crate) fn new(submitter: Submitter) -> Self {
        Self {
            submitter,
            waits: None,
            is_done: false,
        }
    }

    /// Waits for the permit on a plain thread, which sleeps meanwhile.
    ///
    /// [`Task::wait`](crate::Task::wait) lists the threads that may call it. Inside a
    /// job of the same lane it returns at once: what is submitted there needs no permit.
    ///
    /// # Errors
    ///
    /// The same as when it is awaited.
    ///
    /// # Panics
    ///
    /// If it has to wait on a thread that polls tasks of a Tokio runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.handle().reserve().wait().unwrap().spawn_cpu(|| 1).wait().unwrap(), 1);
    /// ```
    #[track_caller]
    pub fn wait(self) -> Result<Permit, JoinError> {
        block_on(self)
    }

    /// Whether to wait, if the lane is full. A caller with a key does not wait for time.
    fn waits(&self, full: &JoinError) -> bool {
        let has_key = self.submitter.key.is_some();
        full.kind() == JoinErrorKind::QueueFull && !(has_key && full.retry_after().is_some())
    }

    fn poll_acquire(&mut self, cx: &mut Context<'_>) -> Poll<Admitted> {
        if self.waits.is_none() {
            match super::admit(&self.submitter, None) {
                Err(full) if self.waits(&full) => {
                    let (limits, key) = (&self.submitter.level().limits, &self.submitter.key);
                    let charge = Charge::new(limits, key.as_ref())?;
                    self.waits = Some(Box::pin(acquire(limits.clone(), charge)));
                }
                admitted => return Poll::Ready(admitted),
            }
        }
        let waits = self.waits.as_mut().expect("it waits");
        let charge = ready!(waits.as_mut().poll(cx)).map(Some);
        let closed = |_| self.submitter.levels.lane.reason_once_closed().into();
        Poll::Ready(charge.map(Extras::from).map_err(closed))
    }
}

impl Future for Reserve {
    type Output = Result<Permit, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let budget = ready!(coop::poll_proceed(cx));
        assert!(!self.is_done, "a `Reserve` was polled after it was ready");
        let admitted = ready!(self.poll_acquire(cx));
        budget.made_progress();
        self.is_done = true;
        self.waits = None;
        Poll::Ready(Permit::of(admitted, self.submitter.clone()))
    }
}

/// A wait that is dropped counts as a rejection, too.
impl Drop for Reserve {
    fn drop(&mut self) {
        if self.waits.is_some() {
            self.submitter.count(Event::Rejected);
        }
    }
}

debug_by_name!(Reserve, priority: |it: &Self| it.submitter.priority, waits: |it: &Self| it.waits.is_some());
