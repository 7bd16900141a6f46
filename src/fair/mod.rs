//! Fair shares of the CPU lane for each tenant: one customer's flood does not queue before the
//! others.
//!
//! Within a priority the lane is FIFO. [`Fair`] keeps a queue for each *key* (a customer, a user, an
//! API token) before it. The guide says when you need it: [`guide::fair`](crate::guide::fair).

// The path of a job: `key.rs` makes a ticket of it, `turn.rs` queues that and gives it its turn,
// `order.rs` says whose turn it is. The ticket hands the job to the lane, in the span of its
// submitter (`origin.rs`), and puts the lane's task where the submitter waits (`task.rs`).

mod error;
mod key;
mod order;
mod origin;
mod task;
#[cfg(test)]
mod tests;
mod turn;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;
use std::time::Duration;

use twolane_core::Handle;

use self::key::{Hashed, Tenant};
use self::order::Order;
use self::turn::Turns;
use crate::sync::Mutex;

pub use self::error::FairError;
pub use self::key::Key;
pub use self::task::FairTask;

/// Shares the CPU lane among keys by the CPU time of their jobs.
///
/// Keys that have jobs queued get equal shares of the lane's CPU time, or shares by
/// [weight](Key::with_weight). The jobs of one key get their turns in order. As many jobs are under
/// way as the handle's priority has threads. The others wait here and not in the lane's queue, so
/// [`max_wait`](crate::Builder::max_wait) and [`queue_limit`](crate::Builder::queue_limit) do not
/// refuse them: the limits of this type do. For all else they are jobs of the lane: priority, name,
/// deadline, span, cancellation and shutdown hold as ever.
///
/// - **What a job takes is measured** when it ends, and charged to its key: the CPU time of its
///   thread, or a quarter of the time if that is more, since a job that sleeps keeps a thread. So ten
///   jobs of 1 ms cost as much as one of 10 ms. Not counted is what rayon runs for the job on other
///   threads.
/// - **An absent key earns no credit.** It keeps its debt until no job is queued. A key that comes is
///   behind those that have used less.
/// - **A future is charged by step.** It has no turn while it is suspended.
/// - **A running job is not interrupted.** A key waits for the jobs that run now, however long they
///   are.
///
/// Clones share the queues and limits. Use one for a lane and priority: two do not know of each
/// other.
///
/// # Cost
///
/// About two microseconds for a job: three allocations, a lock, and one or two readings of the
/// thread's CPU time. A key that is known takes some 300 bytes.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use twolane::{CpuRuntime, Fair};
///
/// let cpu = CpuRuntime::new()?;
/// let fair = Fair::new(cpu.handle()).max_queued_per_key(256).max_keys(10_000);
/// let hash = fair.key("acme").spawn_cpu(|| 6 * 7).await?; // dropping it cancels the job
/// assert_eq!(hash, 42);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Fair<K: Hash + Eq + Send + Sync + 'static> {
    cpu: Handle,
    turns: Arc<Turns<Hashed<Arc<K>>>>,
    hasher: RandomState,
}

impl<K: Hash + Eq + Send + Sync + 'static> Fair<K> {
    /// Queues before the lane of this handle, at its priority.
    ///
    /// # Examples
    ///
    /// See [`Fair`].
    pub fn new(cpu: &Handle) -> Self {
        let turns = Turns(Mutex::new(Order::new(cpu.worker_threads())));
        let (cpu, turns) = (cpu.without_limit(), Arc::new(turns));
        let hasher = RandomState::new();
        Self { cpu, turns, hasher }
    }

    /// How many jobs of a key may be queued, and how many of its futures may have begun. One more is
    /// a [`FairError`]. The default is 256.
    ///
    /// A queued job whose task was dropped counts until its turn, when the lane drops what it holds:
    /// so this bounds memory. A future that was accepted is not refused later, nor is a closure
    /// because of futures that have begun: they may wait for it.
    ///
    /// # Panics
    ///
    /// If `jobs` is 0.
    ///
    /// # Examples
    ///
    /// See [`Fair`].
    pub fn max_queued_per_key(self, jobs: usize) -> Self {
        assert!(jobs > 0, "Fair::max_queued_per_key(0): at least 1");
        self.turns.order().max_queued = jobs;
        self
    }

    /// How many keys are known at a time: those with jobs queued, and others. The default is 10,000.
    ///
    /// A job of another key makes it forget one without queued jobs: the one that owes least, with its
    /// debt. If all have jobs queued, it is a [`FairError`] instead.
    ///
    /// # Panics
    ///
    /// If `keys` is 0.
    ///
    /// # Examples
    ///
    /// See [`Fair`].
    pub fn max_keys(self, keys: usize) -> Self {
        assert!(keys > 0, "Fair::max_keys(0): at least 1");
        self.turns.order().max_keys = keys;
        self
    }

    /// Submits the jobs of this key. It costs an allocation; the key is known from its first job on.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// # use std::time::{Duration, Instant};
    /// let fair = twolane::Fair::new(cpu.handle());
    /// let customer = fair.key(String::from("acme")).with_weight(4);
    /// assert_eq!(customer.spawn_cpu(|| 1).await.unwrap(), 1);
    /// assert_eq!(customer.spawn(async { 2 }).await.unwrap(), 2);
    /// let in_time = cpu.handle().with_deadline(Instant::now() + Duration::from_secs(60));
    /// assert_eq!(customer.by(&in_time).spawn_cpu(|| 3).await.unwrap(), 3);
    /// # }
    /// ```
    pub fn key(&self, key: K) -> Key<K> {
        let key = Hashed(self.hasher.hash_one(&key), Arc::new(key));
        Key(Tenant {
            cpu: self.cpu.clone(),
            turns: self.turns.clone(),
            key,
            weight: 1,
        })
    }

    /// The keys that have used most CPU time since they became known, at most so many, by that time.
    ///
    /// Jobs that begin or end wait while it looks at all keys, 10,000 by default. Keys are labels without a bound, so export these few.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let fair = twolane::Fair::new(cpu.handle());
    /// fair.key("acme").spawn_cpu(|| (0..100_000_u64).sum::<u64>()).await.unwrap();
    /// for usage in fair.busiest(10) {
    ///     println!("{}: {:?}, {} queued", usage.key, usage.cpu_time, usage.queued);
    /// }
    /// # }
    /// ```
    pub fn busiest(&self, keys: usize) -> Vec<KeyUsage<K>> {
        // Not all keys are cloned under the lock.
        let (order, mut most) = (self.turns.order(), BTreeMap::new());
        for (key, (queue, usage)) in &order.keys {
            let rank = (usage.cpu_time, usage.place.2);
            if most.len() < keys || most.keys().next() < Some(&rank) {
                most.insert(rank, (key, queue.len()));
            }
            if most.len() > keys {
                most.pop_first();
            }
        }
        let most = most.into_iter().rev();
        most.map(|((cpu_time, _), (key, queued))| KeyUsage {
            key: key.1.clone(),
            queued,
            cpu_time: Duration::from_nanos(cpu_time as u64),
        })
        .collect()
    }
}

/// What a key has queued and used: of [`Fair::busiest`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KeyUsage<K> {
    /// The key.
    pub key: Arc<K>,
    /// Jobs that wait for a turn, with those whose tasks were dropped.
    pub queued: usize,
    /// What the steps that have ended were charged, since the key became known: CPU time, or a quarter
    /// of the time of those that wait.
    pub cpu_time: Duration,
}
