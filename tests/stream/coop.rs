//! Does a stream that is ready all the time leave others a turn: tasks of the I/O runtime,
//! jobs of the lane?

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::support::busy::wait_for_idle;
use crate::support::turns::{current_thread, turns_of_another};
use crate::support::wait::wait_until;
use crate::support::{Dropped, cpu_lane, lanes};
use futures::executor::block_on;
use futures::future::select_all;
use futures::{StreamExt, stream};
use tokio::task::coop;
use twolane::stream::Buffered;
use twolane::{CpuIteratorExt, CpuStreamExt};

/// More than any test reads: the window is never full.
const ENDLESS: usize = 1 << 30;

/// One unit of 128 pays for 32 items or messages at most. Half of the turns that this makes
/// is a bound that leaves some freedom.
fn fewest_turns(items: usize) -> usize {
    items / (32 * 128) / 2
}

/// All outputs are there, so the channel of the stream is never empty. Those of a `filter` that lets
/// nothing through come in messages without items: a consumer that took them all in one poll gave the
/// other tasks no turn.
#[test]
fn a_consumer_of_cheap_items_or_of_none_lets_others_have_turns() {
    for (inputs, lets_through) in [(100_000, true), (20_000, false)] {
        let io = current_thread();
        let cpu = cpu_lane(1, io.handle());
        let (dropped, source_dropped) = mpsc::channel();
        let sentinel = Dropped(dropped);
        let source = (0..inputs).inspect(move |_| _ = &sentinel);
        let mut stages = source
            .on_cpu(cpu.handle())
            .flat_map(move |n| lets_through.then_some(n));
        if !lets_through {
            stages = stages.batch_time(Duration::ZERO);
        }
        let mut numbers = stages.buffered(inputs + 1);
        source_dropped.recv().unwrap();
        wait_for_idle(cpu.handle());
        let turns = turns_of_another(&io, async move {
            for n in (0..inputs).take_while(|_| lets_through) {
                assert_eq!(numbers.next().await.unwrap().unwrap(), n);
            }
            assert!(numbers.next().await.is_none());
        });
        assert!(turns >= fewest_turns(inputs), "{turns}");
    }
}

/// A poll that returned `Pending` spent a unit, so a task that polled more than 128 streams
/// got no further than the 128th, for ever.
#[test]
fn pending_streams_do_not_starve_a_ready_one() {
    let (cpu, lanes) = lanes(1).and_handle();
    let reader = async move {
        let silent = || CpuStreamExt::on_cpu(stream::pending(), &cpu).buffered(4);
        let mut streams: Vec<_> = (0..200).map(|_| silent()).collect();
        streams.push(CpuStreamExt::on_cpu(stream::iter([1]), &cpu).buffered(4));
        let nexts = streams.iter_mut().map(|stream| stream.next());
        select_all(nexts).await.0.unwrap().unwrap()
    };
    let reader = lanes.io.spawn(reader);
    assert_eq!(lanes.io.block_on(reader).unwrap(), 1);
}

/// Counts how often it was called, and lets nothing through.
fn counter() -> (Arc<AtomicUsize>, impl Fn(()) -> Option<()> + Send + Sync) {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let stage = move |()| {
        count.fetch_add(1, SeqCst);
        None
    };
    (calls, stage)
}

#[test]
fn a_source_that_is_always_ready_lets_tasks_have_turns() {
    let io = current_thread();
    let cpu = cpu_lane(1, io.handle());
    let (calls, stage) = counter();
    let source = CpuStreamExt::on_cpu(stream::repeat(()), cpu.handle()).flat_map(stage);
    let _stream: Buffered<()> = source.buffered(ENDLESS);
    // Each time the source is read between two turns of this task.
    let reads = io.spawn(async move {
        for _ in 0..20 {
            let before = calls.load(SeqCst);
            while calls.load(SeqCst) == before {
                tokio::task::yield_now().await;
            }
        }
    });
    io.block_on(reads).unwrap();
}

/// The pump is one job of a lane of one thread, and so are the worker and the others.
#[test]
fn a_source_that_is_always_ready_lets_jobs_have_turns() {
    let lanes = lanes(1);
    let (calls, stage) = counter();
    let source = CpuIteratorExt::on_cpu(std::iter::repeat(()), lanes.cpu.handle());
    let _stream: Buffered<()> = source.flat_map(stage).buffered(ENDLESS);
    for n in 0..20 {
        let before = calls.load(SeqCst);
        wait_until(|| calls.load(SeqCst) > before);
        assert_eq!(lanes.cpu.spawn_cpu(move || n).wait().unwrap(), n);
        let future = lanes.cpu.spawn(async move {
            tokio::task::yield_now().await;
            n
        });
        assert_eq!(future.wait().unwrap(), n);
    }
}

/// The stages are closures, which cannot yield: a budget that is used up would make one wait for
/// ever. They may follow a future that has spent its own on the same thread, also one that panicked.
#[test]
fn stages_have_no_budget() {
    let (cpu, lanes) = lanes(1).and_handle();
    for panics in [false, true] {
        let spends = async move {
            while coop::has_budget_remaining() {
                coop::consume_budget().await;
            }
            assert!(!panics, "with its budget used up");
        };
        assert_eq!(cpu.spawn(spends).wait().is_err(), panics);
        let stage = |n| {
            block_on(async {
                for _ in 0..300 {
                    coop::consume_budget().await;
                }
            });
            n
        };
        let outputs = [1, 2].into_iter().on_cpu(&cpu).map(stage);
        let outputs = outputs.buffered(2);
        let outputs: Vec<_> = lanes.io.block_on(outputs.collect());
        assert_eq!(outputs.len(), 2);
    }
}
