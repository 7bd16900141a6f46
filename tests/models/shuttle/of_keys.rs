//! Jobs of keys, and jobs without one, beside workers: the code of `lane/queue.rs`, `lane/keyed.rs`
//! and `limits/keys.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use shuttle::thread;
use stallwatch::Name;

use crate::check;
use crate::error::CloseReason;
use crate::key::Key;
use crate::lane::RunQueue;
use crate::limits::Charge;
use crate::of_limits::limits;
use crate::pace::{Popped, Shares};
use crate::task::{Cancel, Runnable, StepEnd, Worker};

/// A job that counts how often it was popped.
struct Job {
    key: Option<Key>,
    popped: AtomicUsize,
}

impl Job {
    fn new(key: Option<&'static str>) -> Arc<Self> {
        let (key, popped) = (key.map(Key::from), AtomicUsize::new(0));
        Arc::new(Self { key, popped })
    }
}

impl Cancel for Job {
    fn cancel(self: Arc<Self>) -> Option<Name> {
        None
    }
    fn has_ended(&self) -> bool {
        false
    }
}

impl Runnable for Job {
    fn run(self: Arc<Self>, _: &mut Worker<'_>) -> StepEnd {
        StepEnd::Ended
    }
    fn is_short(&self) -> bool {
        false
    }
    fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }
    fn close(&self, _: CloseReason) {}
    fn discard(&self) {
        self.popped.fetch_add(1, SeqCst);
    }
    fn end_request(&self) -> Option<CloseReason> {
        None
    }
    fn in_span(&self, f: &mut dyn FnMut()) {
        f();
    }
}

/// As a worker does that was woken.
fn pop_all(queue: &RunQueue) {
    let mut popped = Popped::default();
    while let Some(job) = queue.pop(&mut popped) {
        job.discard();
        popped.computed = std::time::Duration::from_millis(job.key().map_or(1, |_| 5));
        queue.end_turn(&mut popped);
    }
}

/// Who pushes a job wakes a worker, which pops until it finds nothing: then that job was popped, be
/// it by another worker. Some go through the order, and some pass it by.
#[test]
fn each_job_is_popped_once() {
    check(|| {
        let queue = Arc::new(RunQueue::new(Arc::new(Shares::new(2, None))));
        let jobs = [Some("a"), Some("b"), None].map(|key| [0, 1].map(|_| Job::new(key)));
        let threads = jobs.clone().map(|jobs| {
            let queue = queue.clone();
            thread::spawn(move || {
                for job in jobs {
                    queue.push(job.clone(), false, job.key());
                    pop_all(&queue);
                }
            })
        });
        let _ = threads.map(|thread| thread.join().unwrap());
        let mut all = jobs.iter().flatten();
        assert!(all.all(|job| job.popped.load(SeqCst) == 1));
        assert_eq!((queue.is_empty(), queue.len()), (true, 0));
    });
}

/// A key has no more jobs than it may have, and a job that has ended, or was refused, leaves nothing
/// in the table.
#[test]
fn a_key_is_bounded_and_leaves_nothing() {
    check(|| {
        let limits = limits(1);
        let key = Key::new("a").with_max_jobs(1);
        let threads = [(); 3].map(|()| {
            let (limits, key) = (limits.clone(), key.clone());
            thread::spawn(move || {
                let charge = Charge::new(&limits, Some(&key)).ok();
                charge.iter().for_each(|it| it.queue(|| None, false));
                thread::yield_now();
                charge
            })
        });
        let charges = threads.map(|thread| thread.join().unwrap());
        let taken = charges.iter().flatten().count();
        assert_eq!(taken, 1);
        assert!(limits.admit(Some(&key), None).is_err());
        let another = Key::new("b").with_max_jobs(1);
        drop(limits.admit(Some(&another), Some((false, None))).unwrap());
        drop(charges);
        assert!(limits.is_free());
    });
}
