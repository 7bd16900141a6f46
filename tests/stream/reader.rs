//! What does a stream do about a reader that goes, takes nothing, or whose waker panics?

use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::gate::gate;
use crate::support::wait::wait_until;
use crate::support::{Dropped, child, lanes, time_limit};
use futures::executor::block_on;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use twolane::stream::Buffered;
use twolane::{CpuIteratorExt, CpuRuntime, CpuStreamExt, Handle, JoinErrorKind};

const SOON: Duration = Duration::from_millis(20);

/// Endless, with a reader that takes nothing. Its end comes `SOON` after it is full, or later.
fn stalled(cpu: &Handle) -> (mpsc::Receiver<String>, Buffered<u32>) {
    let (dropped, drops) = mpsc::channel();
    let sentinel = Dropped(dropped);
    let source = stream::iter(0..).inspect(move |_| _ = &sentinel);
    let source = CpuStreamExt::on_cpu(source, cpu);
    (drops, source.reader_timeout(SOON).buffered(4))
}

/// Its source, and what it had computed, were there for as long as its reader was. The runtime has
/// no timers.
#[test]
fn a_reader_that_takes_nothing_ends_the_stream() {
    let _limit = time_limit();
    let io = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("io")
        .build()
        .unwrap();
    let cpu = CpuRuntime::builder().io_handle(io.handle().clone());
    let cpu = cpu.thread_name("cpu").worker_threads(1).build().unwrap();
    let (drops, numbers) = stalled(cpu.handle());
    assert_eq!(drops.recv().unwrap(), "io");
    let mut numbers: Vec<_> = block_on(numbers.collect());
    let error = numbers.pop().unwrap().unwrap_err();
    assert_eq!(error.kind(), JoinErrorKind::Expired);
    let text = error.to_string();
    assert!(
        text.contains("20ms") && text.contains("reader_timeout"),
        "{text}"
    );
    // What was there for it comes first.
    let numbers: Vec<_> = numbers.into_iter().map(Result::unwrap).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    // The states of the stages go as well.
    let (dropped, drops) = mpsc::channel();
    let state = move || Dropped(dropped.clone());
    let stages = (0..).on_cpu(cpu.handle()).map_init(state, |_, n| n);
    let _numbers = stages.reader_timeout(SOON).buffered(4);
    assert_eq!(drops.recv().unwrap(), "cpu-0");
}

/// A guard outside of the pump took these waits for those of a reader.
#[test]
fn a_stream_that_waits_for_its_lane_does_not_end() {
    let _limit = time_limit();
    let lanes = lanes(1);
    let cpu = lanes.cpu.handle().clone();
    let (gate, stay) = gate();
    let stage = move |n: u32| {
        stay();
        n
    };
    let numbers = stream::iter(0..4);
    let numbers = CpuStreamExt::on_cpu(numbers, &cpu).map(stage);
    let numbers = numbers.reader_timeout(SOON).buffered(1);
    gate.is_reached();
    // The time passes, and once more: another stream ends of it.
    let other = CpuRuntime::builder().io_handle(lanes.io.handle().clone());
    let other = other.worker_threads(1).build().unwrap();
    for _ in 0..3 {
        let (drops, _numbers) = stalled(other.handle());
        drops.recv().unwrap();
    }
    drop(gate);
    let numbers = block_on(numbers.try_collect::<Vec<_>>());
    assert_eq!(numbers.unwrap(), [0, 1, 2, 3]);
}

/// The outputs of one input, which the window has in one piece.
#[test]
fn a_slow_reader_that_goes_on_gets_all() {
    const LONG: Duration = Duration::from_millis(500);
    let _limit = time_limit();
    let lanes = lanes(1);
    let cpu = lanes.cpu.handle().clone();
    // If this thread did not get to read for so long, it was no such reader.
    let read = || {
        let numbers = [40, 1].into_iter().on_cpu(&cpu).flat_map(|n| 0..n);
        let mut numbers = numbers.reader_timeout(LONG).buffered(1);
        let (mut count, mut longest) = (0, Duration::ZERO);
        let began = Instant::now();
        loop {
            let read = Instant::now();
            let (drops, _numbers) = stalled(&cpu);
            drops.recv().unwrap();
            match block_on(numbers.next()) {
                None => break,
                Some(Ok(_)) => count += 1,
                Some(Err(error)) => return Err((error, longest)),
            }
            longest = longest.max(read.elapsed());
        }
        assert!(began.elapsed() > LONG, "no time has passed");
        Ok(count)
    };
    loop {
        match read() {
            Ok(count) => break assert_eq!(count, 41),
            Err((error, longest)) => assert!(longest > LONG / 2, "{error}"),
        }
    }
}

/// All of them had counted as completed.
#[test]
fn the_workers_of_a_dropped_stream_count_as_cancelled() {
    let _limit = time_limit();
    let lanes = lanes(1);
    let cpu = lanes.cpu.handle().clone();
    let all = (0..100).on_cpu(&cpu).buffered(4);
    assert_eq!(block_on(all.try_collect::<Vec<_>>()).unwrap().len(), 100);
    wait_until(|| cpu.metrics().running == 0);
    assert_eq!(cpu.metrics().cancelled, 0);
    let (gate, stay) = gate();
    let numbers = CpuStreamExt::on_cpu(stream::iter(0..), &cpu);
    let numbers = numbers.map(move |_: u32| stay()).buffered(4);
    gate.is_reached();
    drop(numbers);
    drop(gate);
    // (What the stages captured may be dropped by a job of its own, which completes.)
    wait_until(|| cpu.metrics().cancelled == 1);
}

/// A waker that panics, after the reader has polled again: so it is registered anew then.
struct Panics {
    reader: Thread,
    polls: AtomicUsize,
    calls: AtomicUsize,
}

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        let before = self.polls.load(SeqCst);
        self.calls.fetch_add(1, SeqCst);
        self.reader.unpark();
        wait_until(|| self.polls.load(SeqCst) != before);
        panic!("in a waker");
    }
}

fn read_with<S: Stream + Unpin>(mut items: S, waker: &Arc<Panics>) -> Vec<S::Item> {
    let mut all = Vec::new();
    loop {
        let polled = items.poll_next_unpin(&mut Context::from_waker(&waker.clone().into()));
        waker.polls.fetch_add(1, SeqCst);
        match polled {
            Poll::Ready(None) => return all,
            Poll::Ready(Some(item)) => all.push(item),
            Poll::Pending => thread::park(),
        }
    }
}

/// A worker unwound, and its drop called the waker again: the process aborted.
#[test]
fn a_waker_that_panics_costs_nothing() {
    if child::is_child() {
        let _limit = time_limit();
        let lanes = lanes(2);
        let waker = Arc::new(Panics {
            reader: thread::current(),
            polls: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
        });
        let cpu = lanes.cpu.handle().clone();
        let made = AtomicU32::new(0);
        let source = stream::repeat_with(move || made.fetch_add(1, SeqCst)).take(20);
        let source = CpuStreamExt::on_cpu(source, &cpu);
        let numbers = source.map(|n| n).batch_time(Duration::ZERO).buffered(2);
        let numbers = read_with(numbers, &waker);
        let numbers: Vec<_> = numbers.into_iter().map(Result::unwrap).collect();
        assert_eq!(numbers, Vec::from_iter(0..20));
        assert!(waker.calls.load(SeqCst) > 0, "no waker was called");
        // The lane goes on.
        assert_eq!(cpu.spawn_cpu(|| 1).wait().unwrap(), 1);

        return child::found("all");
    }
    let _limit = time_limit();
    let quiet = |child: &mut Command| _ = child.env("RUST_BACKTRACE", "0");
    let found = child::run("reader::a_waker_that_panics_costs_nothing", quiet, |_| ());
    assert_eq!(found, "all");
}
