//! [`Admit`]: the wait for a place in the queue.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Instant;

use super::permit::{Permit, earlier};
use crate::block_on::block_on;
use crate::error::JoinError;
use crate::handle::Handle;
use crate::job::state::Cause;
use crate::lane::{Expire, Outcome, Place, Waiter};

/// Waits for a place in the queue; see [`Handle::admit`].
#[must_use = "futures do nothing unless awaited"]
pub struct Admit {
    handle: Handle,
    deadline: Option<Instant>,
    /// Since the first poll that found no place, until the last.
    waiter: Option<Arc<Waiter>>,
}

impl Admit {
    pub(super) fn new(handle: Handle) -> Self {
        Self {
            handle,
            deadline: None,
            waiter: None,
        }
    }

    /// The [deadline](Permit::with_deadline) of the job that the place is for,
    /// which holds for the wait as well. (One that is set after the first poll
    /// holds for the job alone.)
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use std::time::{Duration, Instant};
    /// use twolane::{CpuRuntime, Priority};
    /// let cpu = CpuRuntime::builder().queue_limit(Priority::Normal, 1).build().unwrap();
    /// let held = cpu.handle().admit().await.unwrap();
    /// let soon = Instant::now() + Duration::from_millis(5);
    /// let late = cpu.handle().admit().with_deadline(soon).await;
    /// assert!(late.unwrap_err().is_expired());
    /// # drop(held);
    /// # }
    /// ```
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(earlier(self.deadline, deadline));
        self
    }

    /// Waits on a plain thread, which sleeps meanwhile; see
    /// [`Task::wait`](crate::Task::wait) for what that is. Inside a job it does not
    /// wait.
    ///
    /// # Errors
    /// As awaiting it.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.handle().admit().wait().unwrap().spawn_cpu(|| 1).wait().unwrap(), 1);
    /// ```
    pub fn wait(self) -> Result<Permit, JoinError> {
        block_on(self)
    }

    fn start(&mut self) -> Poll<Result<Permit, Cause>> {
        let level = self.handle.level();
        let gate = match (Permit::enter(&self.handle, self.deadline), level.gate()) {
            (Err(Cause::QueueFull), Some(gate)) => gate,
            (entered, _) => return Poll::Ready(entered),
        };
        let waiter = Waiter::new();
        if let Some(deadline) = self.deadline {
            let waiter: Weak<dyn Expire> = Arc::downgrade(&waiter) as _;
            level.lane().end_at(deadline, waiter);
        }
        self.waiter = Some(waiter.clone());
        gate.wait(waiter);
        Poll::Pending
    }
}

impl Future for Admit {
    type Output = Result<Permit, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.waiter.is_none() {
            if let Poll::Ready(entered) = this.start() {
                return Poll::Ready(this.counted(entered));
            }
        }
        let waiter = this.waiter.as_ref().expect("it was made above");
        let Poll::Ready(outcome) = waiter.poll(cx) else {
            if this.handle.level().lane().process.is_elsewhere() {
                return Poll::Ready(Err(JoinError::forked()));
            }
            return Poll::Pending;
        };
        let entered = match outcome {
            Outcome::LetIn => {
                let place = Place::new(this.handle.level().clone());
                Ok(Permit::new(&this.handle, Some(place), this.deadline))
            }
            Outcome::Closed => Err(Cause::ShutDown),
            Outcome::Expired => {
                this.give_up();
                return Poll::Ready(Err(JoinError::expired()));
            }
        };
        this.waiter = None;
        Poll::Ready(this.counted(entered))
    }
}

impl Admit {
    fn counted(&self, entered: Result<Permit, Cause>) -> Result<Permit, JoinError> {
        if entered.is_err() {
            self.handle.level().books().note_rejected();
        }
        entered.map_err(JoinError::from)
    }

    /// It waits no more, and got no place.
    fn give_up(&mut self) {
        let level = self.handle.level();
        if let (Some(waiter), Some(gate)) = (self.waiter.take(), level.gate()) {
            level.books().note_rejected();
            gate.give_up(&waiter);
        }
    }
}

impl Drop for Admit {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl Expire for Waiter {
    fn expire(self: Arc<Self>) {
        Waiter::expire(&self);
    }
}

impl fmt::Debug for Admit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admit")
            .field("priority", &self.handle.priority())
            .field("deadline", &self.deadline)
            .field("waits", &self.waiter.is_some())
            .finish_non_exhaustive()
    }
}
