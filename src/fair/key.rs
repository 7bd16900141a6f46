//! [`Key`]: submits the jobs of one tenant, and what the lane runs for them.

use std::future::poll_fn;
use std::hash::{Hash, Hasher};
use std::panic::Location;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, Waker, ready};

use tokio::sync::oneshot;
use twolane_core::{Cancelled, Handle, JobContext, Task, adapters};

use super::error::FairError;
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
pub struct Key<K: Hash + Eq + Send + Sync + 'static>(pub(super) Tenant<Hashed<Arc<K>>>);

/// A key and its hash. The user's `Hash` computes where the key is named, once, and not under the
/// lock, where its panic would lose a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hashed<K>(pub(super) u64, pub(super) K);

impl<K> Hash for Hashed<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

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
    /// # Panics
    ///
    /// If it is a handle of another lane or priority: the turns are those of one.
    ///
    /// # Examples
    ///
    /// See [`Fair::key`](super::Fair::key).
    #[track_caller]
    pub fn by(mut self, cpu: &Handle) -> Self {
        let is_same = self.0.cpu == *cpu && self.0.cpu.priority() == cpu.priority();
        assert!(is_same, "`Key::by`: a handle of another lane or priority");
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
        self.0
            .submit(false, |cpu, turn| cpu.spawn_cpu(|| turn.run(f)))
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
    /// let fair = twolane::Fair::new(cpu.handle());
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
        self.0.submit(false, |cpu, turn| {
            cpu.spawn_cpu_with(|job| turn.run(|| f(job)))
        })
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
        self.0.submit(true, |cpu, turn| {
            let counted = turn.count_future();
            let (sender, first) = oneshot::channel();
            drop(sender.send(turn));
            let mut next = Some(first);
            cpu.spawn(poll_fn(move |cx| {
                let _counted = &counted;
                let turn = next.get_or_insert_with(|| {
                    let (sender, turn) = oneshot::channel();
                    // A future that is gone gives it back.
                    let ticket = Box::new(|turn| drop(sender.send(turn)));
                    tenant.queue(None, ticket).expect("it was accepted");
                    turn
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
    fn submit<T, S>(&self, is_future: bool, spawn: S) -> FairTask<T>
    where
        S: FnOnce(&Handle, Turn<K>) -> Task<T> + Send + 'static,
        T: Send + 'static,
    {
        let slot = Arc::new(Mutex::new(Slot::Queued(None)));
        let (mut of, started) = (self.clone(), slot.clone());
        of.cpu = adapters::at(&self.cpu, Location::caller());
        let [cpu, drops, lane] = [(); 3].map(|()| of.cpu.clone());
        let start = carry(move |turn| spawn(&cpu, turn));
        let ticket = move |turn| {
            // No submitter: the lane drops the job, which has its turn until then. So what waits to
            // be dropped is bounded, too.
            if Arc::strong_count(&started) == 1 {
                return adapters::drop_on_lane(&drops, (start, turn));
            }
            let task = catch(|| start(turn));
            let waker = started.lock().unwrap().start(task);
            let _ = waker.map(Waker::wake);
        };
        let queued = of.queue(Some(is_future), Box::new(ticket));
        Box::pin(async move {
            queued?;
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

    /// `new`: whether it is a future, of a new job.
    fn queue(&self, new: Option<bool>, ticket: Ticket<K>) -> Result<(), FairError> {
        let mut order = self.turns.order();
        new.map_or(Ok(()), |is_future| order.admit(&self.key, is_future))?;
        order.push(&self.key, self.weight, ticket);
        drop(order);
        self.turns.give_out();
        Ok(())
    }
}
