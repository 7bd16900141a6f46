//! Does what is ready all the time leave the other tasks of a Tokio runtime a turn?
//!
//! A Tokio task has a budget for each of its turns: what it awaits takes one from it,
//! and is pending, once, when nothing is left. That keeps a task that finds all
//! ready from holding its thread. Our futures did not take part: a loop that
//! awaited finished jobs, read a buffered stream or came into a lane with free
//! permits went through to its end without a single turn for the others, and on a
//! `current_thread` runtime everything else stood still. A poll that answers
//! `Ready` and does not ask for budget brings that back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::support::turns::{current_thread, full_channel, spend_budget, turns_of_another};
use crate::support::wait::wait_until;
use crate::support::{Stuck, cpu_lane, gives, lanes, time_limit};
use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};
use tokio::task::coop;
use twolane_core::{Builder, CpuRuntime, Handle, Priority};

/// Tokio gives a turn 128. Twice as many is a bound that leaves it some freedom.
const PER_TURN: usize = 256;

/// How many things a reader finds ready, one after the other.
const THINGS: usize = 100_000;

type Reader = fn(&Handle) -> BoxFuture<'static, ()>;

fn is_fair(what: &str, set: fn(Builder) -> Builder, reader: Reader) {
    let _limit = time_limit();
    let io = current_thread();
    let cpu = CpuRuntime::builder().worker_threads(1);
    let cpu = set(cpu.io_handle(io.handle().clone())).build().unwrap();
    let turns = turns_of_another(&io, reader(cpu.handle()));
    assert!(
        turns >= THINGS / PER_TURN,
        "{what}: {turns} turns of the other task"
    );
}

/// Finished jobs, the items of a buffered stream, and free places: of a limit that is far, and without
/// one.
#[test]
fn a_loop_over_what_is_ready_lets_others_have_turns() {
    let jobs: Reader = |cpu| {
        let tasks: Vec<_> = (0..THINGS).map(|n| cpu.spawn_cpu(gives(n))).collect();
        for task in &tasks {
            wait_until(|| task.is_finished());
        }
        let read = async {
            for (n, task) in tasks.into_iter().enumerate() {
                assert_eq!(task.await.unwrap(), n);
            }
        };
        read.boxed()
    };
    let items: Reader = |cpu| {
        let source = futures::stream::iter(0..THINGS);
        let mut items = cpu.stream_from_cpu(source, usize::MAX, |_| 1);
        wait_until(|| items.read_ahead() >= THINGS);
        let read = async move {
            for n in 0..THINGS {
                assert_eq!(items.next().await.unwrap().unwrap(), n);
            }
        };
        read.boxed()
    };
    let places: Reader = |cpu| {
        let cpu = cpu.clone();
        let read = async move {
            for _ in 0..THINGS {
                drop(cpu.reserve().await.unwrap());
            }
        };
        read.boxed()
    };
    let far = |lane: Builder| lane.queue_limit(Priority::Normal, 1_000);
    is_fair("jobs", |lane| lane, jobs);
    is_fair("items", |lane| lane, items);
    is_fair("places", |lane| lane, places);
    is_fair("places of a limit", far, places);
}

/// A blocking wait polls in the one poll of the Tokio task around it, whose budget is
/// not renewed. The 129th wait never returned, since `Task::poll` found no budget left.
#[test]
fn blocking_waits_in_one_poll_of_a_task_do_not_run_out_of_budget() {
    // A thread of its own does the waiting, and a lane of its own the I/O.
    let io = tokio::runtime::Runtime::new().unwrap();
    let cpu = cpu_lane(1, io.handle());
    let waits = |cpu: &Handle| {
        for n in 0..200 {
            let task = cpu.spawn_cpu(gives(n));
            // Async code may wait for what has ended.
            wait_until(|| task.is_finished());
            assert_eq!(task.wait().unwrap(), n);
            drop(cpu.reserve().wait().unwrap());
        }
    };
    // On the thread of a `block_on`, and in a task.
    io.block_on(async { waits(cpu.handle()) });
    let handle = cpu.handle().clone();
    let in_a_task = async move { waits(&handle) };
    let other = current_thread();
    other.block_on(async { tokio::spawn(in_a_task).await.unwrap() });
    assert!(cpu.shutdown().wait().is_empty());
}

/// Tokio wakes a task that has used up its budget only when its worker has run out of
/// tasks, or after many polls. A job that did so goes behind those that are there.
#[test]
fn a_job_that_used_up_its_budget_gets_its_turn_in_a_busy_lane() {
    const ITEMS: usize = 300;
    const JOBS: usize = 200;
    let lanes = lanes(1);
    let stuck = Stuck::start(lanes.cpu.handle());
    let mut receiver = full_channel(ITEMS);
    let ran = Arc::new(AtomicUsize::new(0));
    let before = ran.clone();
    let reads = lanes.cpu.spawn(async move {
        for _ in 0..ITEMS {
            receiver.recv().await.unwrap();
        }
        before.load(SeqCst)
    });
    let others: Vec<_> = (0..JOBS)
        .map(|_| {
            let ran = ran.clone();
            lanes.cpu.spawn_cpu(move || ran.fetch_add(1, SeqCst))
        })
        .collect();
    stuck.end();
    // It yields twice, and after each at most eight jobs pass it. It starts first.
    let before = reads.wait().unwrap();
    let passed = 1..=16;
    assert!(
        passed.contains(&before),
        "{before} of {JOBS} jobs went before it"
    );
    for other in others {
        other.wait().unwrap();
    }
}

/// A closure cannot yield, so a budget that is used up would make it wait for ever. It may
/// follow a future that has spent its own on the same thread, also a future that panicked.
#[test]
fn closures_have_no_budget() {
    const ITEMS: usize = 300;
    fn drain() {
        let mut receiver = full_channel(ITEMS);
        let all = async move { while receiver.recv().await.is_some() {} };
        futures::executor::block_on(all);
    }
    let (cpu, _lanes) = lanes(1).and_handle();
    for panics in [false, true] {
        let spends = async move {
            spend_budget().await;
            assert!(!panics, "with its budget used up");
        };
        assert_eq!(cpu.spawn(spends).wait().is_err(), panics);
        cpu.spawn_cpu(drain).wait().unwrap();
        cpu.install(drain).unwrap();
    }
}

/// Inside `block_in_place`, `futures::executor::block_on(receiver.recv())` waited for ever on
/// a thread of the lane, once the poll had used up its budget: to Tokio, that thread is none of its
/// own, and keeps the budget. What docs/in_a_job.md names instead works.
#[test]
fn a_future_may_block_in_place_by_the_means_that_the_docs_name() {
    const ITEMS: usize = 300;
    let lanes = lanes(1);
    let io = lanes.io.handle().clone();
    let future = async move {
        spend_budget().await;
        tokio::task::block_in_place(|| {
            let read = |items| async move {
                let mut receiver = full_channel(items);
                while receiver.recv().await.is_some() {}
            };
            futures::executor::block_on(coop::unconstrained(read(ITEMS)));
            io.block_on(read(ITEMS));
            let mut receiver = full_channel(ITEMS);
            while receiver.blocking_recv().is_some() {}
        });
    };
    lanes.cpu.spawn(future).wait().unwrap();
}

/// It took two: the task's, and that of Tokio's own join handle below it.
#[test]
fn a_finished_spawn_io_takes_one_unit_of_the_budget() {
    let io = current_thread();
    let cpu = cpu_lane(1, io.handle());
    io.block_on(async {
        let mut tasks: Vec<_> = (0..200)
            .map(|n| cpu.handle().spawn_io(async move { n }))
            .collect();
        while !tasks.iter().all(|task| task.is_finished()) {
            tokio::task::yield_now().await;
        }
        // A turn of its own, whose budget is whole.
        tokio::task::yield_now().await;
        let mut taken = 0;
        while let Some(output) = (&mut tasks[taken]).now_or_never() {
            assert_eq!(output.unwrap(), taken);
            taken += 1;
        }
        assert!((100..=128).contains(&taken), "{taken}");
    });
}
