//! Does a `RestoreOnPending` give a thread its budget back long after the poll it was made in?
//!
//! Relied on in `crates/core/src/task/budget.rs`: it restores what was there before `poll_proceed`
//! whenever it is dropped, also after the end of the `block_on` around that call, and where no
//! Tokio task is polled. A rayon worker keeps one for its life. Without this a future on the
//! lane has no budget, and one that always finds all ready never yields; or it has one
//! for the life of its thread, and waits for ever once that is used up.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::mpsc as std_mpsc;
use std::task::{Context, Poll, Waker};

use crate::support::turns::{current_thread, full_channel};
use crate::support::{Dropped, gives, lanes, time_limit};
use tokio::sync::mpsc;
use tokio::task::coop::{self, RestoreOnPending};

fn take() -> RestoreOnPending {
    match coop::poll_proceed(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(full) => full,
        Poll::Pending => panic!("no budget is left"),
    }
}

const UNLIMITED: usize = 10_000;

/// Uses up the budget of this thread, and returns how much that was.
fn spend() -> usize {
    let mut cx = Context::from_waker(Waker::noop());
    let proceeds = |_: &usize| match coop::poll_proceed(&mut cx) {
        Poll::Ready(unit) => {
            unit.made_progress();
            true
        }
        Poll::Pending => false,
    };
    (0..UNLIMITED).take_while(proceeds).count()
}

#[test]
fn each_drop_of_a_kept_one_fills_the_budget() {
    let _limit = time_limit();
    let mut kept = current_thread().block_on(async { take() });
    assert_eq!(spend(), UNLIMITED, "outside of a poll");
    let mut spent = Vec::new();
    for _ in 0..3 {
        drop(kept);
        kept = take();
        spent.push(spend());
        assert!(!coop::has_budget_remaining());
        // As a worker does around rayon's own work.
        let lifted = coop::unconstrained(poll_fn(|_| Poll::Ready(spend())));
        let lifted = pin!(lifted).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(lifted, Poll::Ready(UNLIMITED));
        assert!(!coop::has_budget_remaining());
    }
    assert!((1..UNLIMITED).contains(&spent[0]), "{spent:?}");
    assert!(spent.iter().all(|units| *units == spent[0]), "{spent:?}");
}

/// A future that is always ready, as a query over data in memory is, yields by the budget
/// only. A rayon worker gave it none: the future held the thread, and a task that was
/// dropped computed on.
#[test]
fn one_that_only_spends_its_budget_lets_others_run_and_sees_its_end() {
    let lanes = lanes(1);
    let (started, running) = std_mpsc::channel();
    let (dropped, end) = std_mpsc::channel();
    let endless = lanes.cpu.spawn(async move {
        let _dropped = Dropped(dropped);
        let (sender, mut receiver) = mpsc::unbounded_channel();
        sender.send(()).unwrap();
        started.send(()).unwrap();
        loop {
            receiver.recv().await.unwrap();
            sender.send(()).unwrap();
        }
    });
    running.recv().unwrap();
    for n in 0..10 {
        assert_eq!(lanes.cpu.spawn_cpu(gives(n)).wait().unwrap(), n);
    }
    drop::<twolane_core::Task<()>>(endless);
    assert_eq!(end.recv().unwrap(), "cpu-0");
    assert_eq!(lanes.cpu.spawn(async { 1 }).wait().unwrap(), 1);
}

/// A future may use what enters a runtime where it may be used without a budget, too.
#[test]
fn a_future_on_rayon_may_block_by_tokios_means() {
    const ITEMS: usize = 300;
    let lanes = lanes(1);
    let io = lanes.io.handle().clone();
    let future = async move {
        let read = |items| async move {
            let mut receiver = full_channel(items);
            while receiver.recv().await.is_some() {}
        };
        // Each has a budget of its own, and leaves that of the future as it was.
        io.block_on(read(ITEMS));
        tokio::task::block_in_place(|| io.block_on(read(ITEMS)));
        current_thread().block_on(read(ITEMS));
        coop::has_budget_remaining()
    };
    assert!(lanes.cpu.spawn(future).wait().unwrap());
}
