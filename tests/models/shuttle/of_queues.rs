//! Which job is next, of those with a key and those without one, and that each is popped once beside
//! other workers: the code of `lane/queue.rs` and `lane/keyed.rs`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use shuttle::thread;
use stallwatch::Name;

use crate::check;
use crate::error::CloseReason;
use crate::key::Key;
use crate::lane::RunQueue;
use crate::of_limits::alone;
use crate::pace::{Popped, Shares};
use crate::task::{Cancel, Runnable, StepEnd, Worker};

const MS: Duration = Duration::from_millis(1);

/// A job that notes its name when it is popped. `a` and `b` have that key; in upper case a job is
/// short.
struct Job {
    name: char,
    key: Option<Key>,
    notes: Arc<Mutex<String>>,
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
        self.name.is_uppercase()
    }
    fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }
    fn close(&self, _: CloseReason) {}
    fn discard(&self) {
        self.notes.lock().unwrap().push(self.name);
    }
    fn end_request(&self) -> Option<CloseReason> {
        None
    }
    fn in_span(&self, f: &mut dyn FnMut()) {
        f();
    }
}

/// The queue of two threads, and the names of the jobs that were popped.
struct Jobs {
    queue: RunQueue,
    notes: Arc<Mutex<String>>,
}

impl Jobs {
    fn new() -> Self {
        Self {
            queue: RunQueue::new(Arc::new(Shares::new(2, None))),
            notes: Arc::default(),
        }
    }

    fn job(&self, name: char) -> Arc<Job> {
        let key = matches!(name, 'a' | 'b' | 'A' | 'B').then(|| name.to_lowercase().to_string());
        Arc::new(Job {
            name,
            key: key.map(Key::from),
            notes: self.notes.clone(),
        })
    }

    /// Submits a job for each letter.
    fn push(&self, names: &str) {
        for job in names.chars().map(|name| self.job(name)) {
            self.queue.push(job.clone(), job.is_short(), job.key());
        }
    }

    /// The same, of jobs that were woken in their step, or that have yielded.
    fn put_back(&self, names: &str, yielded: bool) {
        let jobs = names.chars().map(|name| self.job(name));
        jobs.for_each(|job| self.queue.put_back(job, yielded));
    }

    /// A worker pops a job, whose step computes for 5 ms if it has a key, and else for 1 ms. Returns
    /// whether it had a turn in the order of keys.
    fn pop(&self) -> Option<bool> {
        // As a short job of a key has left it.
        let (is_short, has_key) = (true, true);
        let mut popped = Popped {
            is_short,
            has_key,
            ..Popped::default()
        };
        let job = self.queue.pop(&mut popped)?;
        assert_eq!(popped.has_key, job.key().is_some());
        assert!(!popped.is_short || job.is_short());
        job.discard();
        popped.computed = job.key().map_or(1, |_| 5) * MS;
        let has_turn = popped.turn.is_some();
        self.queue.end_turn(&mut popped);
        Some(has_turn)
    }

    /// As a worker does that was woken.
    fn pop_all(&self) {
        while self.pop().is_some() {}
    }

    fn popped(&self) -> String {
        std::mem::take(&mut self.notes.lock().unwrap())
    }

    /// All of them, by one worker.
    fn in_order(&self) -> String {
        let left = self.queue.len();
        assert_eq!(self.queue.is_empty(), left == 0);
        self.pop_all();
        assert_eq!((self.queue.is_empty(), self.queue.len()), (true, 0));
        let popped = self.popped();
        assert_eq!(popped.len(), left);
        popped
    }
}

/// Who pushes a job wakes a worker, which pops until it finds nothing: then that job was popped, be
/// it by another worker. Some go through the order, and some pass it by.
#[test]
fn each_job_is_popped_once() {
    check(|| {
        let jobs = Arc::new(Jobs::new());
        let threads = ["aa", "bb", "xx"].map(|names| {
            let jobs = jobs.clone();
            thread::spawn(move || {
                for nth in 0..names.len() {
                    jobs.push(&names[nth..=nth]);
                    jobs.pop_all();
                }
            })
        });
        let _ = threads.map(|thread| thread.join().unwrap());
        let mut popped: Vec<_> = jobs.popped().chars().collect();
        popped.sort_unstable();
        assert_eq!(popped, ['a', 'a', 'b', 'b', 'x', 'x']);
        assert_eq!((jobs.queue.is_empty(), jobs.queue.len()), (true, 0));
    });
}

#[test]
fn short_jobs_are_first_and_those_that_yielded_last() {
    alone(|| {
        let jobs = Jobs::new();
        jobs.put_back("yY", true);
        jobs.push("xSxT");
        jobs.put_back("wW", false);
        assert_eq!(jobs.in_order(), "STWxxwyY");
        for one in ["S", "x"] {
            jobs.push(one);
            assert_eq!(jobs.in_order(), one);
        }
        jobs.put_back("y", true);
        assert_eq!(jobs.in_order(), "y");
    });
}

#[test]
fn others_have_their_turn_before_short_jobs_that_lead() {
    for yielded in [false, true] {
        alone(move || {
            let jobs = Jobs::new();
            jobs.push("RST");
            jobs.put_back("x", yielded);
            jobs.pop();
            jobs.queue.shares().add(true, MS);
            jobs.pop();
            assert_eq!(jobs.popped(), "Rx");
            // Without others, there is no lead.
            jobs.pop();
            assert_eq!(jobs.popped(), "S");
            jobs.push("z");
            assert_eq!(jobs.in_order(), "Tz");
        });
    }
}

/// However long others ran, at most a burst of short jobs passes them.
#[test]
fn others_that_run_while_no_short_one_waits_owe_a_burst() {
    alone(|| {
        let jobs = Jobs::new();
        jobs.queue.shares().add(false, 1_000 * MS);
        jobs.push("Sx");
        jobs.pop();
        assert_eq!(jobs.queue.shares().may_pass(), 800_000);
        jobs.pop();
        assert_eq!(jobs.queue.shares().may_pass(), 200_000);
    });
}

#[test]
fn what_yielded_has_its_turn_after_eight_ready_jobs() {
    alone(|| {
        let jobs = Jobs::new();
        jobs.push(&"x".repeat(20));
        jobs.put_back("yyz", true);
        assert_eq!(jobs.in_order(), "xxxxxxxxyxxxxxxxxyxxxxz");
    });
}

/// Else a job would be popped out of the keys' order.
#[test]
fn a_thread_of_another_priority_pops_short_jobs_unless_the_keys_decide() {
    alone(|| {
        let jobs = Jobs::new();
        jobs.push("x");
        assert!(!jobs.queue.may_help());
        assert!(jobs.queue.pop_short().is_none());
        jobs.push("Sa");
        assert!(!jobs.queue.may_help());
        assert!(jobs.queue.pop_short().is_none());
        jobs.pop();
        assert_eq!(jobs.popped(), "a");
        // The keys owe nothing once no job is queued.
        jobs.pop_all();
        jobs.push("S");
        assert!(jobs.queue.may_help());
        assert!(jobs.queue.pop_short().is_some());
        assert!(jobs.queue.is_empty());
    });
}

/// By what their jobs computed. All jobs without a key are one more.
#[test]
fn keys_take_turns() {
    for (keyed, plain, popped) in [
        ("ab", "", "ab"),
        ("aaabb", "", "ababa"),
        ("aaa", "xxxxxxx", "axxxxxaxxa"),
        ("aa", "SSSSSSx", "aSSSSSaSx"),
        ("aAaA", "", "AaAa"),
    ] {
        alone(move || {
            let jobs = Jobs::new();
            jobs.push(keyed);
            jobs.push(plain);
            assert_eq!(jobs.in_order(), popped);
        });
    }
    alone(|| {
        let jobs = Jobs::new();
        jobs.push("a");
        jobs.put_back("xx", true);
        jobs.put_back("a", true);
        assert_eq!(jobs.in_order(), "axxa");
        jobs.put_back("aA", false);
        jobs.put_back("A", true);
        assert_eq!(jobs.in_order(), "AaA");
    });
}

/// They are popped without a lock.
#[test]
fn jobs_without_a_key_have_no_turn_once_no_key_waits_or_has_had_more() {
    alone(|| {
        let jobs = Jobs::new();
        jobs.push("xx");
        assert_eq!(jobs.pop(), Some(false));
        jobs.push("a");
        assert_eq!([jobs.pop(), jobs.pop()], [Some(true), Some(true)]);
        assert_eq!(jobs.popped(), "xax");
        // Debts end where no job is queued.
        assert_eq!(jobs.pop(), None);
        jobs.push("x");
        assert_eq!(jobs.pop(), Some(false));
        // The key has had 5 ms, and they nothing.
        jobs.push("axxxxxxx");
        let turns = std::iter::from_fn(|| jobs.pop()).map(u8::from);
        assert_eq!(Vec::from_iter(turns), [1, 1, 1, 1, 1, 1, 0, 0]);
    });
}
