//! Deadlines that are left for a warden that sleeps, or is about to.

use std::sync::{Arc, Weak};

use loom::thread;

use crate::deadlines::{Deadlines, Expire, Schedule};
use crate::model;

struct Nobody;

impl Expire for Nobody {
    fn expire(self: Arc<Self>) {}
}

fn leave(deadlines: &Deadlines, at: u64) -> bool {
    deadlines.leave(at, Weak::<Nobody>::new())
}

/// The warden sleeps until 10, and wakes, as others leave theirs: it wakes in time
/// for each, or is told to.
fn as_the_warden_wakes<const N: usize>(others: [u64; N]) {
    let deadlines = Arc::new(Deadlines::new());
    let mut schedule = Schedule::new();
    assert!(leave(&deadlines, 10));
    let (due, next) = schedule.look(&deadlines, 0);
    assert!(due.is_empty() && next == Some(10));
    let threads = others.map(|at| {
        let deadlines = deadlines.clone();
        thread::spawn(move || leave(&deadlines, at))
    });
    let (mut due, mut next) = schedule.look(&deadlines, 10);
    if threads.map(|other| other.join().unwrap()).contains(&true) {
        let (more, then) = schedule.look(&deadlines, 10);
        due.extend(more);
        next = then;
    }
    let early = others.iter().filter(|at| **at <= 10).count();
    let late = others.iter().copied().filter(|at| *at > 10).min();
    assert_eq!((due.len(), next), (1 + early, late));
}

#[test]
fn no_deadline_is_slept_through() {
    model(|| as_the_warden_wakes([20]));
    model(|| as_the_warden_wakes([5]));
    model(|| as_the_warden_wakes([5, 20]));
}
