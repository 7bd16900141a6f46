//! The cases that all contenders of Rust's have, as each of them writes them.
//! All of it runs inside one job of the contender; nothing is boxed for the
//! bench's sake.

use std::fmt::Debug;
use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::task::Poll;
use std::time::Instant;

use futures::task::AtomicWaker;

use crate::case::{BATCH, Case, Figures, WAKE_BATCH, WAKES};
use crate::plan::Plan;

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

/// Nanoseconds for each of `n` since `begun`.
pub fn each(begun: Instant, n: u32) -> f64 {
    begun.elapsed().as_nanos() as f64 / f64::from(n)
}

pub async fn figures<S: Spawn>(spawn: &S, plan: &Plan) -> Figures {
    let mut figures = Figures::new();
    for (case, futures) in Case::SWITCHES {
        figures.insert(case, switch(spawn, futures, plan.switches).await);
    }
    figures.insert(Case::Start, start(spawn, plan.starts).await);
    figures.insert(Case::Start1000, start_1000(spawn, plan.batches).await);
    let wakes = self_wake(spawn, plan.switches).await;
    figures.insert(Case::SelfWake, wakes);
    let hand_overs = ping_pong(spawn, plan.hand_overs).await;
    figures.insert(Case::PingPong, hand_overs);
    let batches = wake_batch(spawn, plan.wake_batches).await;
    figures.insert(Case::WakeBatch, batches);
    figures
}

async fn switch<S: Spawn>(spawn: &S, futures: u32, switches: u32) -> f64 {
    let arrived = Arc::new(AtomicU32::new(0));
    let yields = switches / futures;
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
    (last - first).as_nanos() as f64 / f64::from(yields * futures)
}

async fn start<S: Spawn>(spawn: &S, n: u32) -> f64 {
    let begun = Instant::now();
    for _ in 0..n {
        assert_eq!(spawn.spawn(async { black_box(1) }).await.unwrap(), 1);
    }
    each(begun, n)
}

async fn start_1000<S: Spawn>(spawn: &S, batches: u32) -> f64 {
    let mut started = Vec::with_capacity(BATCH as usize);
    let begun = Instant::now();
    for _ in 0..batches {
        started.extend((0..BATCH).map(|_| spawn.spawn(async { black_box(1) })));
        for one in started.drain(..) {
            assert_eq!(one.await.unwrap(), 1);
        }
    }
    each(begun, batches * BATCH)
}

/// Wakes the future that awaits it so often, and each time leaves its thread.
fn wake_self(mut times: u32) -> impl Future<Output = ()> + Send {
    poll_fn(move |cx| {
        if times == 0 {
            return Poll::Ready(());
        }
        times -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

async fn self_wake<S: Spawn>(spawn: &S, wakes: u32) -> f64 {
    let alone = spawn.spawn(async move {
        let begun = Instant::now();
        wake_self(wakes).await;
        each(begun, wakes)
    });
    alone.await.unwrap()
}

/// Two futures, one of which has its turn.
#[derive(Default)]
struct Table {
    turn: AtomicU32,
    players: [AtomicWaker; 2],
}

impl Table {
    /// Hands over when it has its turn, wakes the other one and waits to be woken:
    /// a poll for each turn, also where the other one answers at once.
    async fn play(&self, me: usize, turns: u32) {
        poll_fn(|cx| {
            self.players[me].register(cx.waker());
            let turn = self.turn.load(SeqCst);
            if turn < turns && turn as usize % 2 == me {
                self.turn.store(turn + 1, SeqCst);
                self.players[1 - me].wake();
                return Poll::Pending;
            }
            // The one who had the last turn is woken once more, by the other.
            if turn >= turns {
                self.players[1 - me].wake();
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }
}

async fn ping_pong<S: Spawn>(spawn: &S, turns: u32) -> f64 {
    let table = Arc::new(Table::default());
    let begun = Instant::now();
    let players = [0, 1].map(|me| {
        let table = table.clone();
        spawn.spawn(async move { table.play(me, turns).await })
    });
    for player in players {
        player.await.unwrap();
    }
    each(begun, turns)
}

async fn wake_batch<S: Spawn>(spawn: &S, batches: u32) -> f64 {
    let mut started = Vec::with_capacity(WAKE_BATCH as usize);
    let begun = Instant::now();
    for _ in 0..batches {
        started.extend((0..WAKE_BATCH).map(|_| spawn.spawn(wake_self(WAKES))));
        for one in started.drain(..) {
            one.await.unwrap();
        }
    }
    each(begun, batches * WAKE_BATCH)
}
