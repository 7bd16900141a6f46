//! The workers of a stream and its chunks.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use loom::sync::atomic::Ordering::SeqCst;
use loom::sync::atomic::fence;
use loom::thread;

use crate::sync::Queue;
use crate::workers::Workers;

/// As `stream/shared.rs` and `stream/worker.rs`. A thread that submits a worker also plays it.
struct StreamModel {
    queue: Queue<()>,
    workers: Workers,
    /// Counted outside of the model, so that they order nothing there.
    ran: AtomicUsize,
    live: AtomicUsize,
    most: usize,
}

impl StreamModel {
    fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            queue: Queue::new(),
            workers: Workers::new(most),
            ran: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            most,
        })
    }

    fn push(&self) {
        self.queue.push(());
        fence(SeqCst);
        if self.workers.try_add() {
            self.drain();
        }
    }

    fn drain(&self) {
        assert!(self.live.fetch_add(1, SeqCst) < self.most);
        loop {
            if self.queue.pop().is_some() {
                self.ran.fetch_add(1, SeqCst);
                continue;
            }
            self.live.fetch_sub(1, SeqCst);
            if self.workers.try_end(|| self.queue.is_empty()) {
                break;
            }
            self.live.fetch_add(1, SeqCst);
        }
    }
}

fn every_chunk_runs(most: usize) {
    crate::model(move || {
        let stream = StreamModel::new(most);
        let other = thread::spawn({
            let stream = stream.clone();
            move || (0..2).for_each(|_| stream.push())
        });
        (0..2).for_each(|_| stream.push());
        other.join().unwrap();
        assert_eq!(stream.ran.load(SeqCst), 4);
        assert!(stream.workers.try_add(), "none is live");
    });
}

#[test]
fn every_chunk_runs_with_one_worker() {
    every_chunk_runs(1);
}

#[test]
fn every_chunk_runs_with_two_workers() {
    every_chunk_runs(2);
}
