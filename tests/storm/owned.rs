//! Values that live on the I/O lane.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use futures::future::join_all;
use futures::{StreamExt, stream};
use twolane::{Handle, HandleExt, IoOwned};

use crate::dice::Dice;
use crate::support::thread_name;
use crate::surroundings::{Done, Item, Round, wait_a_little};
use crate::watchdog::Planned;

/// What was done to the value, in order. As a pooled connection does, its drop spawns a task.
struct Log {
    calls: Vec<u64>,
    item: Item,
    round: Arc<Round>,
}

impl Drop for Log {
    fn drop(&mut self) {
        let (item, round) = (self.item.clone(), self.round.clone());
        let is_on_io = move || {
            let is_it = thread_name() == "io";
            assert!(is_it || round.io_ends.load(SeqCst), "dropped elsewhere");
        };
        is_on_io();
        tokio::spawn(async move {
            let _item = item;
            is_on_io();
        });
    }
}

/// Calls of one owner: they come in the order in which it made them, also after one that was
/// given up or has panicked.
pub(crate) async fn owned(round: Arc<Round>, cpu: Handle, mut dice: Dice, id: u64) {
    let log = Log {
        calls: Vec::new(),
        item: round.live.item(id),
        round: round.clone(),
    };
    let mut log: IoOwned<Log> = cpu.io_owned(log);
    let mut certain = Vec::new();
    let calls = dice.below(20);
    for call in 0..calls {
        let waits = dice.below(5);
        let push = async move |log: &mut Log| {
            log.calls.push(call);
            for _ in 0..waits {
                tokio::task::yield_now().await;
            }
            log.calls.len()
        };
        match dice.below(8) {
            0 => {
                let mut given_up = Box::pin(log.with(push));
                // It has begun, or is about to.
                if let std::task::Poll::Ready(Err(error)) = futures::poll!(&mut given_up) {
                    return round.check(error, Done::default());
                }
            }
            1 => {
                let panics = async move |log: &mut Log| {
                    log.calls.push(call);
                    std::panic::panic_any(Planned(id));
                };
                let error = log.with(panics).await.unwrap_err();
                let is_panic = error.is_panic();
                round.check(error, Done::panics(id));
                if !is_panic {
                    return;
                }
                certain.push(call);
            }
            2 => {
                let calls = log.stream(|log| stream::iter(log.calls.clone()).boxed(), 4, |_| 1);
                let calls: Vec<_> = calls.collect().await;
                let mut before = None;
                for item in calls {
                    match item {
                        Ok(call) => {
                            assert!(before < Some(call), "out of order");
                            before = Some(call);
                        }
                        Err(error) => return round.check_bridge(error, Done::default()),
                    }
                }
            }
            _ => match log.with(push).await {
                Ok(_) => certain.push(call),
                Err(error) => return round.check(error, Done::default()),
            },
        }
        wait_a_little(&mut dice).await;
    }
    if dice.once_in(3) {
        // Dropped on the I/O lane.
        return;
    }
    match log.take(async |log| log.calls.clone()).await {
        Ok(found) => {
            assert!(found.is_sorted(), "{found:?}");
            let found = |call: &u64| found.binary_search(call).is_ok();
            assert!(certain.iter().all(found), "{certain:?}");
        }
        Err(error) => round.check(error, Done::default()),
    }
}

/// One value that several jobs use.
pub(crate) async fn shared(round: Arc<Round>, cpu: Handle, limited: bool, mut dice: Dice, id: u64) {
    let value = (Arc::new(AtomicU64::new(0)), round.live.item(id));
    let shared = cpu.io_owned(value).shared();
    let jobs = (0..dice.below(6)).map(|_| {
        let (shared, round) = (shared.clone(), round.clone());
        cpu.spawn(async move {
            let add = async |(sum, _item): (Arc<AtomicU64>, Item)| sum.fetch_add(1, SeqCst);
            let added = shared.with(add).await;
            added.map_err(|error| round.check(error, Done::default()))
        })
    });
    let jobs: Vec<_> = jobs.collect();
    let (mut certain, mut in_doubt) = (0, 0);
    for added in join_all(jobs).await {
        match added {
            Ok(added) => certain += u64::from(added.is_ok()),
            // A job that a shutdown has dropped may have added or not.
            Err(error) => {
                in_doubt += 1;
                round.check(error, Done::needs_permit(limited));
            }
        }
    }
    let sums = certain..=certain + in_doubt;
    match shared.with(async |(sum, _item)| sum.load(SeqCst)).await {
        Ok(sum) => assert!(sums.contains(&sum), "{sum} is none of {sums:?}"),
        Err(error) => round.check(error, Done::default()),
    }
}
