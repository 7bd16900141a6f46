//! Jobs that get their turn from whoever looks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use loom::thread;

use crate::model;
use crate::order::Order;
use crate::sync::Mutex;
use crate::turn::{Turn, Turns};

/// A lane of one thread.
fn turns() -> Arc<Turns<u8>> {
    Arc::new(Turns(Mutex::new(Order::new(1))))
}

/// As `Tenant::queue` does.
fn queue(turns: &Arc<Turns<u8>>, key: u8, ticket: impl FnOnce(Turn<u8>) + Send + 'static) {
    turns.order().push(&key, 1, Box::new(ticket));
    turns.give_out();
}

fn job(ran: &Arc<AtomicUsize>) -> impl FnOnce(Turn<u8>) + Send + 'static + use<> {
    let ran = ran.clone();
    move |turn| {
        turn.run(|| ran.fetch_add(1, SeqCst));
    }
}

/// The turn is out, or comes back, while another job queues: one of the two threads sees it.
#[test]
fn no_job_misses_its_turn() {
    model(|| {
        let (turns, ran) = (turns(), Arc::new(AtomicUsize::new(0)));
        let (other, its_job) = (turns.clone(), job(&ran));
        let other = thread::spawn(move || queue(&other, 1, its_job));
        queue(&turns, 2, job(&ran));
        other.join().unwrap();
        assert_eq!(ran.load(SeqCst), 2);
    });
}

/// The job runs on another thread than the one that gave it its turn, as the lane's do.
#[test]
fn a_turn_comes_back_from_another_thread() {
    model(|| {
        let (turns, ran) = (turns(), Arc::new(AtomicUsize::new(0)));
        let handed = Arc::new(Mutex::new(None));
        let (hand, its_job) = (handed.clone(), job(&ran));
        queue(&turns, 1, move |turn| *hand.lock().unwrap() = Some(turn));
        let turn = handed
            .lock()
            .unwrap()
            .take()
            .expect("there was a free turn");
        let ends = thread::spawn(move || its_job(turn));
        queue(&turns, 2, job(&ran));
        queue(&turns, 1, job(&ran));
        ends.join().unwrap();
        assert_eq!(ran.load(SeqCst), 3);
    });
}
