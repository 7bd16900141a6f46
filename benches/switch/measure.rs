//! The cases that all contenders of Rust have, as each of them writes them. All of it
//! runs inside one job of the contender; nothing is boxed for the bench's sake.

use std::fmt::Debug;
use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::task::AtomicWaker;

use crate::WAKE_BATCH;

/// How often each of a batch wakes itself.
const WAKES: u64 = 3;

/// How a contender starts a future, and how one gives way there.
pub trait Spawn: Send + Sync + 'static {
    type Error: Debug;
    type Task<T: Send + 'static>: Future<Output = Result<T, Self::Error>> + Send;

    /// Called inside one of its own tasks.
    fn spawn<F>(&self, future: F) -> Self::Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static;

    fn yield_now() -> impl Future<Output = ()> + Send;
}

/// How long `n` of a case take.
pub async fn time<S: Spawn>(spawn: &S, case: &str, n: u64) -> Duration {
    match case {
        "switch_alone" => switch(spawn, 1, n).await,
        "switch_100" => switch(spawn, 100, n).await,
        "start" => start(spawn, n).await,
        "self_wake" => self_wake(spawn, n).await,
        "ping_pong" => ping_pong(spawn, n).await,
        "wake_batch" => wake_batch(spawn, n).await,
        _ => unreachable!("no such case: {case}"),
    }
}

async fn switch<S: Spawn>(spawn: &S, futures: u64, switches: u64) -> Duration {
    let arrived = Arc::new(AtomicU64::new(0));
    let yields = switches.div_ceil(futures);
    let running: Vec<_> = (0..futures)
        .map(|_| {
            let arrived = arrived.clone();
            spawn.spawn(async move {
                arrived.fetch_add(1, Relaxed);
                while arrived.load(Relaxed) < futures {
                    S::yield_now().await;
                }
                let begun = Instant::now();
                for _ in 0..yields {
                    S::yield_now().await;
                }
                (begun, Instant::now())
            })
        })
        .collect();
    let mut spans = Vec::with_capacity(running.len());
    for one in running {
        spans.push(one.await.unwrap());
    }
    let first = spans.iter().map(|(begun, _)| *begun).min().unwrap();
    let last = spans.iter().map(|(_, ended)| *ended).max().unwrap();
    // Some more than were asked for, where they are not so many times the futures.
    (last - first).mul_f64(switches as f64 / (yields * futures) as f64)
}

async fn start<S: Spawn>(spawn: &S, n: u64) -> Duration {
    let begun = Instant::now();
    for _ in 0..n {
        assert_eq!(spawn.spawn(async { black_box(1) }).await.unwrap(), 1);
    }
    begun.elapsed()
}

/// Wakes the future that awaits it so often, and each time leaves its thread.
fn wake_self(mut times: u64) -> impl Future<Output = ()> + Send {
    poll_fn(move |cx| {
        if times == 0 {
            return Poll::Ready(());
        }
        times -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

async fn self_wake<S: Spawn>(spawn: &S, wakes: u64) -> Duration {
    let alone = spawn.spawn(async move {
        let begun = Instant::now();
        wake_self(wakes).await;
        begun.elapsed()
    });
    alone.await.unwrap()
}

/// Two futures, one of which has its turn.
#[derive(Default)]
struct Table {
    turn: AtomicU64,
    players: [AtomicWaker; 2],
}

impl Table {
    /// Hands over when it has its turn, wakes the other one and waits to be woken:
    /// a poll for each turn, also where the other one answers at once.
    async fn play(&self, me: usize, turns: u64) {
        poll_fn(|cx| {
            self.players[me].register(cx.waker());
            let turn = self.turn.load(SeqCst);
            if turn < turns && turn as usize % 2 == me {
                self.turn.store(turn + 1, SeqCst);
                self.players[1 - me].wake();
                return Poll::Pending;
            }
            // The player of the last turn is woken once more, by the other.
            if turn >= turns {
                self.players[1 - me].wake();
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }
}

async fn ping_pong<S: Spawn>(spawn: &S, turns: u64) -> Duration {
    let table = Arc::new(Table::default());
    let begun = Instant::now();
    let players = [0, 1].map(|me| {
        let table = table.clone();
        spawn.spawn(async move { table.play(me, turns).await })
    });
    for player in players {
        player.await.unwrap();
    }
    begun.elapsed()
}

async fn wake_batch<S: Spawn>(spawn: &S, n: u64) -> Duration {
    let mut started = Vec::with_capacity(WAKE_BATCH as usize);
    let begun = Instant::now();
    let mut left = n;
    while left > 0 {
        let batch = WAKE_BATCH.min(left);
        left -= batch;
        started.extend((0..batch).map(|_| spawn.spawn(wake_self(WAKES))));
        for one in started.drain(..) {
            one.await.unwrap();
        }
    }
    begun.elapsed()
}
