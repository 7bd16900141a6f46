//! [`Key`]: submits the jobs of one tenant, and what the lane runs for them.

use std::future::poll_fn;
use std::hash::Hash;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, Waker, ready};

use tokio::sync::oneshot;
use twolane_core::{Cancelled, Handle, JobContext, Task, adapters};

use super::error::FairError;
use super::order::Stamp;
use super::origin::carry;
use super::task::{FairTask, Slot};
use super::turn::{Id, Ticket, Turn, Turns};
use crate::catch::catch;
use crate::sync::Mutex;

/// Submits the jobs of one key: of [`Fair::key`](super::Fair::key).
///
/// # Examples
///
/// See [`Fair::key`](super::Fair::key).
#[derive(Clone, Debug)]
pub struct Key<K: Hash + Eq + Send + Sync + 'static>(pub(super) Tenant<Arc<K>>);

/// Whose jobs queue, and where.
#[derive(Clone, Debug)]
pub(super) struct Tenant<K: Id> {
    pub(super) cpu: Handle,
    pub(super) turns: Arc<Turns<K>>,
    pub(super) key: K,
    pub(super) weight: u32,
}

impl<K: Hash + Eq + Send + Sync + 'static> Key<K> {
    /// The key's share, beside keys of weight 1. A job that comes sets the weight of its key.
    ///
    /// # Panics
    ///
    /// If `weight` is 0.
    ///
    /// # Examples
    ///
    /// See [`Fair::key`](super::Fair::key).
    pub fn with_weight(mut self, weight: u32) -> Self {
        assert!(weight > 0, "Key::with_weight(0): at least 1");
        self.0.weight = weight;
        self
    }

    /// Submits by this handle of the same lane and priority, which has a
    /// [deadline](Handle::with_deadline) or a [name](Handle::with_name).
    ///
    /// # Examples
    ///
    /// See [`Fair::key`](super::Fair::key).
    pub fn by(mut self, cpu: &Handle) -> Self {
        self.0.cpu = cpu.without_limit();
        self
    }

    /// As [`Handle::spawn_cpu`], when the key has its turn.
    ///
    /// # Errors
    ///
    /// The task returns the [`FairError`]: the key's queue is full, there are too many keys, or the
    /// lane's own.
    ///
    /// # Examples
    ///
    /// See [`Fair::key`](super::Fair::key).
    #[track_caller]
    pub fn spawn_cpu<F, T>(&self, f: F) -> FairTask<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.0.submit(|cpu, turn| cpu.spawn_cpu(|| turn.run(f)))
    }

    /// As [`Handle::spawn_cpu_with`], when the key has its turn.
    ///
    /// # Errors
    ///
    /// As [`spawn_cpu`](Self::spawn_cpu).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let fair = twolane::Fair::new(&cpu.handle());
    /// let task = fair.key("acme").spawn_cpu_with(|job| {
    ///     job.checkpoint()?; // fails once the task was dropped
    ///     Ok(42)
    /// });
    /// assert_eq!(task.await.unwrap(), 42);
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn_cpu_with<F, T>(&self, f: F) -> FairTask<T>
    where
        F: FnOnce(&JobContext) -> Result<T, Cancelled> + Send + 'static,
        T: Send + 'static,
    {
        self.0
            .submit(|cpu, turn| cpu.spawn_cpu_with(|job| turn.run(|| f(job))))
    }

    /// As [`Handle::spawn`], each step when the key has its turn.
    ///
    /// # Errors
    ///
    /// As [`spawn_cpu`](Self::spawn_cpu). A future that was accepted is not refused later.
    ///
    /// # Examples
    ///
    /// See [`Fair::key`](super::Fair::key).
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> FairTask<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (mut future, tenant) = (Box::pin(future), self.0.clone());
        self.0.submit(|cpu, turn| {
            let (sender, first) = oneshot::channel();
            drop(sender.send(turn));
            let mut next = Some((None, first));
            cpu.spawn(poll_fn(move |cx| {
                let (_, turn) = next.get_or_insert_with(|| {
                    let (sender, turn) = oneshot::channel();
                    // A future that is gone gives it back.
                    let ticket = Box::new(|turn| drop(sender.send(turn)));
                    (tenant.queue(false, ticket).ok(), turn)
                });
                let turn = ready!(Pin::new(turn).poll(cx)).expect("its ticket is queued");
                next = None;
                turn.run(|| future.as_mut().poll(cx))
            }))
        })
    }
}

impl<K: Id> Tenant<K> {
    #[track_caller]
    fn submit<T, S>(&self, spawn: S) -> FairTask<T>
    where
        S: FnOnce(&Handle, Turn<K>) -> Task<T> + Send + 'static,
        T: Send + 'static,
    {
        let slot = Arc::new(Mutex::new(Slot::Queued(None)));
        let (mut of, started) = (self.clone(), slot.clone());
        of.cpu = adapters::at(&self.cpu, Location::caller());
        let (cpu, lane) = (of.cpu.clone(), of.cpu.clone());
        let start = carry(move |turn| spawn(&cpu, turn));
        let ticket = move |turn| {
            let task = catch(|| start(turn));
            let waker = started.lock().unwrap().start(task);
            let _ = waker.map(Waker::wake);
        };
        let queued = of.queue(true, Box::new(ticket));
        Box::pin(async move {
            let _queued = queued?;
            let mut closed = pin!(lane.closed());
            // The lane answers for the jobs that it has. Jobs with a turn may run long.
            let error = || adapters::close_error(&lane).expect("it is closed");
            let output = poll_fn(|cx| match &mut *slot.lock().unwrap() {
                Slot::Queued(_) if closed.as_mut().poll(cx).is_ready() => Poll::Ready(Err(error())),
                slot => slot.poll(cx),
            });
            output.await.map_err(FairError::Job)
        })
    }

    fn queue(&self, is_new: bool, ticket: Ticket<K>) -> Result<Queued<K>, FairError> {
        let mut order = self.turns.order();
        is_new.then(|| order.admit(&self.key)).transpose()?;
        let number = order.push(&self.key, self.weight, ticket);
        drop(order);
        self.turns.give_out();
        Ok(Queued(self.clone(), number))
    }
}

/// A job's ticket. The drop takes it out of the queue, if it is there.
struct Queued<K: Id>(Tenant<K>, Stamp);

impl<K: Id> Drop for Queued<K> {
    fn drop(&mut self) {
        let ticket = self.0.turns.order().cancel(&self.0.key, self.1);
        let _ = ticket.map(|ticket| adapters::drop_on_lane(&self.0.cpu, ticket));
    }
}
