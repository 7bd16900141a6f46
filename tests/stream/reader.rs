//! What does a stream do about a reader that goes, or whose waker panics?

use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::support::wait::wait_until;
use crate::support::{child, on_both, time_limit};
use futures::executor::block_on;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use twolane::{CpuIteratorExt, CpuStreamExt};

/// All of them had counted as completed.
#[test]
fn the_workers_of_a_dropped_stream_count_as_cancelled() {
    on_both(1, |lanes| {
        let cpu = lanes.cpu.handle();
        let all = (0..100).on_cpu(&cpu).buffered(4);
        assert_eq!(block_on(all.try_collect::<Vec<_>>()).unwrap().len(), 100);
        wait_until(|| cpu.metrics().running == 0);
        assert_eq!(cpu.metrics().cancelled, 0);
        let ended = cpu.metrics().completed;
        let (began, begins) = mpsc::channel();
        let (let_go, go) = mpsc::channel::<()>();
        let go = Mutex::new(go);
        let numbers = CpuStreamExt::on_cpu(stream::iter(0..), &cpu);
        let numbers = numbers.map(move |n: u32| {
            let _ = began.send(());
            let _ = go.lock().unwrap().recv();
            n
        });
        let numbers = numbers.buffered(4);
        begins.recv().unwrap();
        drop((numbers, let_go));
        wait_until(|| cpu.metrics().cancelled == 1);
        assert_eq!(cpu.metrics().completed, ended);
    });
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
        on_both(2, |lanes| {
            let waker = Arc::new(Panics {
                reader: thread::current(),
                polls: AtomicUsize::new(0),
                calls: AtomicUsize::new(0),
            });
            let cpu = lanes.cpu.handle();
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
        });
        return child::found("all");
    }
    let _limit = time_limit();
    let quiet = |child: &mut Command| _ = child.env("RUST_BACKTRACE", "0");
    let found = child::run("reader::a_waker_that_panics_costs_nothing", quiet, |_| ());
    assert_eq!(found, "all");
}
