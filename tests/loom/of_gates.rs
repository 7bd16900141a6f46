//! Those who wait for a place in a limited queue, and those who give one back.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::thread;

use crate::gate::{Gate, Outcome, Waiter};
use crate::model;

/// With one place, which is taken.
fn full() -> Arc<Gate> {
    let gate = Arc::new(Gate::new(1));
    assert!(gate.try_enter());
    gate
}

fn look(waiter: &Waiter) -> Poll<Outcome> {
    waiter.poll(&mut Context::from_waker(Waker::noop()))
}

fn in_thread(gate: &Arc<Gate>, f: impl FnOnce(&Gate) + 'static) -> thread::JoinHandle<()> {
    let gate = gate.clone();
    thread::spawn(move || f(&gate))
}

/// Whoever waits as the place comes back has it, and is woken.
#[test]
fn a_place_that_comes_back_finds_its_waiter() {
    model(|| {
        let gate = full();
        let holder = in_thread(&gate, Gate::leave);
        let waiter = Waiter::new();
        gate.wait(waiter.clone());
        let outcome = block_on(poll_fn(|cx| waiter.poll(cx)));
        assert_eq!(outcome, Outcome::LetIn);
        holder.join().unwrap();
        assert!(!gate.try_enter());
    });
}

/// One of two waiters leaves, at any moment: the place is the other's.
#[test]
fn no_place_is_lost_with_a_waiter_that_leaves() {
    model(|| {
        let gate = full();
        let holder = in_thread(&gate, Gate::leave);
        let fickle = in_thread(&gate, |gate| {
            let waiter = Waiter::new();
            gate.wait(waiter.clone());
            gate.give_up(&waiter);
        });
        let waiter = Waiter::new();
        gate.wait(waiter.clone());
        holder.join().unwrap();
        fickle.join().unwrap();
        assert_eq!(look(&waiter), Poll::Ready(Outcome::LetIn));
        assert!(!gate.try_enter());
    });
}

/// Those that have left are swept out as a place comes back, and as another comes:
/// nobody who waits is overlooked, and the first is the first.
#[test]
fn a_sweep_overlooks_nobody() {
    model(|| {
        let gate = full();
        let [gone, first] = [(); 2].map(|()| Waiter::new());
        gate.wait(gone.clone());
        gate.wait(first.clone());
        gate.give_up(&gone);
        let holder = in_thread(&gate, Gate::leave);
        let second = Waiter::new();
        let late = second.clone();
        let newcomer = in_thread(&gate, move |gate| gate.wait(late));
        gate.sweep();
        holder.join().unwrap();
        newcomer.join().unwrap();
        assert_eq!(look(&first), Poll::Ready(Outcome::LetIn));
        assert!(look(&second).is_pending());
        gate.leave();
        assert_eq!(look(&second), Poll::Ready(Outcome::LetIn));
    });
}

/// One that tries, and perhaps succeeds, beside one that waits: as it goes, that
/// one is let in.
#[test]
fn who_tries_takes_nothing_from_who_waits() {
    model(|| {
        let gate = Arc::new(Gate::new(1));
        let hasty = in_thread(&gate, |gate| {
            if gate.try_enter() {
                gate.leave();
            }
        });
        let waiter = Waiter::new();
        gate.wait(waiter.clone());
        hasty.join().unwrap();
        assert_eq!(look(&waiter), Poll::Ready(Outcome::LetIn));
        assert!(!gate.try_enter());
    });
}

/// Two places come back, by two threads, and two wait.
#[test]
fn two_places_find_two_waiters() {
    model(|| {
        let gate = Arc::new(Gate::new(2));
        assert!(gate.try_enter() && gate.try_enter());
        let holders = [(); 2].map(|()| in_thread(&gate, Gate::leave));
        let waiters = [(); 2].map(|()| Waiter::new());
        for waiter in &waiters {
            gate.wait(waiter.clone());
        }
        for holder in holders {
            holder.join().unwrap();
        }
        for waiter in waiters {
            assert_eq!(look(&waiter), Poll::Ready(Outcome::LetIn));
        }
        assert!(!gate.try_enter());
    });
}

/// A deadline comes as the place does: it is the waiter's, or the next one's.
#[test]
fn a_place_is_not_lost_to_a_deadline() {
    model(|| {
        let gate = full();
        let waiter = Waiter::new();
        gate.wait(waiter.clone());
        let holder = in_thread(&gate, Gate::leave);
        waiter.expire();
        holder.join().unwrap();
        match look(&waiter) {
            Poll::Ready(Outcome::Expired) => assert!(gate.try_enter()),
            Poll::Ready(Outcome::LetIn) => assert!(!gate.try_enter()),
            other => panic!("{other:?}"),
        }
    });
}

/// Nobody waits at a gate that is closed.
#[test]
fn who_comes_as_the_gate_closes_is_told() {
    model(|| {
        let gate = full();
        let closer = in_thread(&gate, Gate::close);
        let waiter = Waiter::new();
        gate.wait(waiter.clone());
        let outcome = block_on(poll_fn(|cx| waiter.poll(cx)));
        assert_eq!(outcome, Outcome::Closed);
        closer.join().unwrap();
    });
}
