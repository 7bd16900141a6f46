//! What a task leaves the other tasks of its runtime.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::coop;

pub fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Runs `reader` as a task, and returns how many turns another task has meanwhile.
pub fn turns_of_another<F>(io: &Runtime, reader: F) -> usize
where
    F: Future<Output = ()> + Send + 'static,
{
    let turns = Arc::new(AtomicUsize::new(0));
    let count = turns.clone();
    io.block_on(async {
        let counter = tokio::spawn(async move {
            loop {
                count.fetch_add(1, SeqCst);
                tokio::task::yield_now().await;
            }
        });
        // It counts from the reader's first turn to its last.
        let had = tokio::spawn(async move {
            let before = turns.load(SeqCst);
            reader.await;
            turns.load(SeqCst) - before
        });
        let had = had.await.unwrap();
        counter.abort();
        had
    })
}

/// A channel with so many items, and no more to come.
pub fn full_channel(items: usize) -> UnboundedReceiver<usize> {
    let (sender, receiver) = unbounded_channel();
    (0..items).for_each(|item| sender.send(item).unwrap());
    receiver
}

/// Uses up the budget of the task that polls it.
pub async fn spend_budget() {
    while coop::has_budget_remaining() {
        coop::consume_budget().await;
    }
}
