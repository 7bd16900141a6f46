//! [`Keyed`]: the queued jobs of keys, and whose turn it is, theirs or that of the jobs without one.
//!
//! **The path of a job.** A submitter, or who wakes a future, pushes it to the *inbox*, and takes no
//! lock: it may be an I/O thread. A worker that pops takes the lock of the [`Order`], queues there
//! what is in the inbox, and takes the job that is next. When the step has ended, it does the same
//! with the inbox, and tells the order for how long the step computed. The lock is one of workers,
//! who have one nice value. Besides, who closes the queue takes it, and `call_sites`.
//!
//! **Jobs without a key** are those of one more key, `None`, of weight 1. They stay in the lane's
//! own queues: in the order, two tokens stand for all of them. While no job of a key is queued, and no
//! key has had more than it is due (with what its running jobs are charged), workers pop them without
//! a look at the order, and they are not charged. A key that comes is then next. While one has had
//! more, they are charged, until they have had as much: a key that comes back after hours owes
//! nothing.
//!
//! **Obligations.** [liveness] A job that is pushed is popped: `queued` counts it once it is in the
//! inbox, and before the submitter looks for a worker; who finds `queued` above 0 finds the job in the
//! inbox or in the order, or it has been popped. A worker may pop a job before its submitter has
//! counted it: then `queued` is one too low, and may hide another job until that submitter has
//! counted, and looks for a worker. [safety] Each turn ends once, also if its job did not run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::key::{Key, KeyName};
use crate::pace::{Order, Popped, Shares, Turn};
use crate::sync::{
    AtomicBool, AtomicIsize, Mutex, MutexGuard, Ordering::Relaxed, Ordering::SeqCst, Queue,
};
use crate::task::Runnable;

type Job = Arc<dyn Runnable>;
/// Of a job without a key, it is a token: the job is in the lane's own queue.
type Queued = Option<Job>;

pub(super) struct Keyed {
    inbox: Queue<(Key, Job, bool)>,
    order: Mutex<Order<Option<KeyName>, Queued>>,
    queued: AtomicIsize,
    /// See [`Order::has_debtor`]. A hint.
    has_debtor: AtomicBool,
}

impl Keyed {
    pub(super) fn new(shares: Shares) -> Self {
        Self {
            inbox: Queue::default(),
            order: Mutex::new(Order::new(shares)),
            queued: AtomicIsize::new(0),
            has_debtor: AtomicBool::new(false),
        }
    }

    pub(super) fn push(&self, key: Key, job: Job, is_short: bool) {
        self.inbox.push((key, job, is_short));
        self.queued.fetch_add(1, SeqCst);
    }

    pub(super) fn len(&self) -> usize {
        self.queued.load(SeqCst).max(0) as usize
    }

    /// Whether the order says which job is next.
    #[inline]
    pub(super) fn decides(&self) -> bool {
        self.len() > 0 || self.has_debtor.load(Relaxed)
    }

    /// With all that is in the inbox: a key that comes starts at the time of now, so it is queued
    /// before a job that ends after that sets now.
    fn order(&self) -> MutexGuard<'_, Order<Option<KeyName>, Queued>> {
        // No code of the user runs under it.
        let mut order = self.order.lock().expect("nothing panics under the lock");
        while let Some((key, job, is_short)) = self.inbox.pop() {
            order.push(&Some(key.name), key.weight, Some(job), is_short);
        }
        order
    }

    /// Pops the job that is next. `pop_plain` pops one without a key, and `has_plain` tells whether
    /// there is one.
    pub(super) fn pop(
        &self,
        popped: &mut Popped,
        has_plain: impl Fn() -> bool,
        pop_plain: impl Fn(&mut Popped) -> Option<Job>,
    ) -> Option<Job> {
        let mut order = self.order();
        // One is left when one is taken: a key whose queue is empty would lose what it is due.
        while has_plain() && order.queued(&None) < 2 {
            order.push(&None, 1, None, false);
        }
        loop {
            let (job, is_short, turn) = order.next()?;
            // Also while its job runs, by what that is charged.
            self.has_debtor.store(order.has_debtor(), Relaxed);
            if job.is_some() {
                self.queued.fetch_sub(1, SeqCst);
                (popped.is_short, popped.has_key) = (is_short, true);
            }
            let job = job.or_else(|| pop_plain(popped));
            if job.is_some() {
                popped.turn = Some(turn);
                return job;
            }
            // Another worker was faster, which did not look at the order.
            order.end(&turn, Duration::ZERO, false);
            self.has_debtor.store(order.has_debtor(), Relaxed);
        }
    }

    /// The step of this turn has ended, and computed for so long. `is_short`: whether it turned out
    /// to be of a short site.
    pub(super) fn end(&self, turn: &Turn<Option<KeyName>>, computed: Duration, is_short: bool) {
        let mut order = self.order();
        order.end(turn, computed, is_short);
        self.has_debtor.store(order.has_debtor(), Relaxed);
    }

    /// The keys that have used most, at most so many, by that: with how many jobs they have queued,
    /// and what they have used. (Not all keys are cloned under the lock.)
    pub(super) fn busiest(&self, most: usize) -> Vec<(KeyName, usize, Duration)> {
        let (order, mut busiest) = (self.order(), BTreeMap::new());
        for (nth, (key, queued, computed)) in order.all().enumerate() {
            let rank = (computed, nth);
            if let Some(key) = key {
                busiest.insert(rank, (key, queued));
            }
            if busiest.len() > most {
                busiest.pop_first();
            }
        }
        let used = |((computed, _), (key, queued)): ((_, _), (&KeyName, _))| {
            (key.clone(), queued, computed)
        };
        busiest.into_iter().rev().map(used).collect()
    }
}
