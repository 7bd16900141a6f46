//! Threads that come while jobs arrive.

use std::sync::Arc;

use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::{AcqRel, Acquire, SeqCst};
use loom::thread;

use crate::model;
use crate::opening::{Opening, Pushed};

/// A queue whose threads are not there yet, as in `lane/level.rs`; its length
/// only, here too.
struct Unopened {
    queued: AtomicUsize,
    opening: Opening,
    kicks: AtomicUsize,
    asked: AtomicUsize,
}

impl Unopened {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            queued: AtomicUsize::new(0),
            opening: Opening::new(),
            kicks: AtomicUsize::new(0),
            asked: AtomicUsize::new(0),
        })
    }

    fn push(&self) {
        self.queued.fetch_add(1, AcqRel);
        match self.opening.pushed() {
            Pushed::Kick => {
                self.kicks.fetch_add(1, SeqCst);
            }
            Pushed::Ask => {
                self.asked.fetch_add(1, SeqCst);
            }
            Pushed::Rest => {}
        }
    }
}

/// Each job that came before the threads, or as they came, gets its kick; and
/// they are asked for once.
#[test]
fn no_job_is_left_behind_as_the_threads_come() {
    model(|| {
        let level = Unopened::new();
        level.push();
        let [a, b] = [(); 2].map(|()| {
            let level = level.clone();
            thread::spawn(move || level.push())
        });
        // What the one does who was asked.
        level.opening.opened();
        let seen = level.queued.load(Acquire);
        level.kicks.fetch_add(seen, SeqCst);
        a.join().unwrap();
        b.join().unwrap();
        assert!(level.kicks.load(SeqCst) >= 3);
        assert_eq!(level.asked.load(SeqCst), 1);
    });
}

/// If there are none to be had, each job is ended, or has asked anew.
#[test]
fn no_job_is_left_behind_if_there_are_no_threads() {
    model(|| {
        let level = Unopened::new();
        level.push();
        let [a, b] = [(); 2].map(|()| {
            let level = level.clone();
            thread::spawn(move || level.push())
        });
        level.opening.failed();
        let ended = level.queued.load(Acquire);
        level.queued.fetch_sub(ended, AcqRel);
        a.join().unwrap();
        b.join().unwrap();
        let waits = level.queued.load(SeqCst) > 0;
        assert!(!waits || level.asked.load(SeqCst) == 2);
    });
}
