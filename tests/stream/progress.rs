//! Does a stream go on while its consumer, its source or its lane is busy?

use std::iter;
use std::sync::mpsc;
use std::time::Duration;

use crate::context::{INPUTS, SOURCES, in_window};
use crate::gate::gate;
use crate::support::busy::Busy;
use crate::support::turns::current_thread;
use crate::support::{Lanes, Stuck, cpu_lane, lanes};
use crate::{channel, spin};
use futures::{StreamExt, stream};
use twolane::stream::Buffered;
use twolane::{CpuIteratorExt, CpuStreamExt, Handle};

/// The pump gave its inputs to the workers, and looked at the clock, after 128 of them,
/// however long the iterator took over each: the workers had nothing to do for so long.
#[test]
fn the_items_of_a_slow_iterator_go_to_the_workers_one_by_one() {
    let lanes = lanes(2);
    let (ran, runs) = mpsc::channel();
    let source = (0..40).inspect(move |&n| {
        if n < 20 {
            // The iterator computes for some time: more than what it is worth to
            // collect items for.
            spin(Duration::from_millis(1));
        } else {
            // By now the other thread has run what came before.
            runs.recv().unwrap();
        }
    });
    let numbers = source.on_cpu(lanes.cpu.handle()).map(move |n| {
        // The source is dropped at its end, and the receiver with it.
        let _ = ran.send(n);
        n
    });
    let all: Vec<_> = lanes
        .io
        .block_on(numbers.buffered(1_000).map(|n| n.unwrap()).collect());
    assert_eq!(all, Vec::from_iter(0..40));
}

/// A pump that has used up its turn yields by Tokio's `yield_now`, which leaves the waker
/// with this worker. The worker must call it before it takes a long job.
#[test]
fn a_long_job_does_not_hold_up_an_iterator_that_has_yielded() {
    let (cpu, lanes) = lanes(2).and_handle();
    // One thread is busy while the other one reads the iterator.
    let other = Stuck::start(&cpu);
    let (turn_began, turn_begins) = mpsc::channel();
    let (go_on, wait) = mpsc::channel::<()>();
    let mut first = true;
    let source = (0..1_000).inspect(move |_| {
        if std::mem::take(&mut first) {
            turn_began.send(()).unwrap();
            wait.recv().unwrap();
        }
        spin(Duration::from_micros(20));
    });
    let numbers = source.on_cpu(&cpu).map(|n| n).buffered(1_000);
    turn_begins.recv().unwrap();
    // The thread takes it when the pump yields.
    let (gate, stay) = gate();
    let long = cpu.spawn_cpu(stay);
    go_on.send(()).unwrap();
    gate.is_reached();
    other.end();
    let all: Vec<_> = lanes
        .io
        .block_on(numbers.map(|n| n.unwrap()).collect::<Vec<_>>());
    assert_eq!(all, Vec::from_iter(0..1_000));
    drop(gate);
    long.wait().unwrap();
}

/// Unlike the `buffered` of futures-rs (its issue 2387), which reads its source, and has its futures
/// run, only while the consumer polls.
#[test]
fn the_window_fills_while_the_consumer_is_busy() {
    const WINDOW: usize = 64;
    let lanes = lanes(2);
    let (ran, runs) = mpsc::channel();
    let source = stream::iter(0..1_000);
    let mut numbers = CpuStreamExt::on_cpu(source, lanes.cpu.handle())
        .map(move |n: usize| ran.send(n).unwrap())
        .buffered(WINDOW);
    // No poll at all, and then none after the first output.
    runs.iter().take(WINDOW).for_each(drop);
    for _ in 0..WINDOW {
        lanes.io.block_on(numbers.next()).unwrap().unwrap();
    }
    // Less than an eighth of the window may be kept back.
    runs.iter().take(WINDOW - (WINDOW / 8 - 1)).for_each(drop);
}

/// Nothing waits for a batch to fill, however long a batch is.
#[test]
fn an_item_that_comes_alone_is_delivered_alone() {
    for on_cpu in [false, true] {
        let lanes = lanes(2);
        let (sender, source) = channel();
        let mut stages = source.on_cpu(lanes.cpu.handle()).map(|n: u32| n);
        if on_cpu {
            stages = stages.source_on_cpu();
        }
        let stages = stages.batch_time(Duration::from_secs(3_600));
        let mut numbers = stages.buffered(1_000);
        let mut next = || lanes.io.block_on(numbers.next()).unwrap().unwrap();
        // By now it knows how cheap an item is.
        (0..1_000).for_each(|n| sender.send(n).unwrap());
        (0..1_000).for_each(|n| assert_eq!(next(), n));
        for n in 0..20 {
            sender.send(n).unwrap();
            assert_eq!(next(), n);
        }
    }
}

/// The ways in which a source is read.
pub(crate) fn each_source(cpu: &Handle) -> [Buffered<u32>; 3] {
    SOURCES.map(|source| in_window(4, cpu, source, || (), |n| n))
}

pub(crate) async fn all(numbers: Buffered<u32>) -> Vec<u32> {
    numbers.map(Result::unwrap).collect().await
}

/// Reads them one after the other.
pub(crate) fn are_whole(lanes: &Lanes, streams: [Buffered<u32>; 3]) {
    for numbers in streams {
        let all = lanes.io.block_on(all(numbers));
        assert_eq!(all, Vec::from_iter(0..INPUTS));
    }
}

#[test]
fn a_stream_gets_its_turn_in_a_lane_that_is_full_of_jobs() {
    let (cpu, lanes) = lanes(1).and_handle();
    let _busy = Busy::with(16, &cpu);
    are_whole(&lanes, each_source(&cpu));
}

/// The worker runs behind the jobs that were there before it, and before the later ones.
#[test]
fn a_worker_has_its_place_in_the_queue() {
    let io = current_thread();
    let lane = cpu_lane(1, io.handle());
    let cpu = lane.handle().clone();
    let (ran, runs) = mpsc::channel();
    let submit = |what: &'static str| {
        let ran = ran.clone();
        cpu.spawn_cpu(move || ran.send(what).unwrap()).detach();
    };
    let stuck = Stuck::start(&cpu);
    (0..8).for_each(|_| submit("before"));
    let at_stage = ran.clone();
    let source = CpuStreamExt::on_cpu(stream::iter([()]), &cpu);
    let stages = source.map(move |()| at_stage.send("stage").unwrap());
    let _stream = stages.buffered(4);
    // On the pump's thread, which has submitted the worker when it is counted here.
    io.block_on(async {
        while cpu.metrics().queued < 9 {
            tokio::task::yield_now().await;
        }
    });
    (0..8).for_each(|_| submit("after"));
    stuck.end();
    let runs: Vec<_> = runs.iter().take(17).collect();
    let before = iter::repeat_n("before", 8).chain(["stage"]);
    assert_eq!(
        runs,
        Vec::from_iter(before.chain(iter::repeat_n("after", 8)))
    );
}
