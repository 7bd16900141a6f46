//! The ways to handle a stream of pieces, and what each does with it.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::task::yield_now;
use twolane::Handle;

use crate::pieces::{Pieces, Stream};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On a plain thread, without a runtime.
    Alone,
    Inline,
    Yielding,
    OneByOne,
    RunCpu,
    SeveralAtOnce,
    Batches,
}

/// What is compared with.
pub const ALONE: &str = "alone on a core";

impl Way {
    pub const ALL: [(&str, Self); 7] = [
        (ALONE, Self::Alone),
        ("inline", Self::Inline),
        ("inline, yields", Self::Yielding),
        ("one by one", Self::OneByOne),
        ("run_cpu", Self::RunCpu),
        ("several at once", Self::SeveralAtOnce),
        ("batches of 1 ms", Self::Batches),
    ];

    /// Handles them all; returns how many they were.
    pub async fn handle_all(self, handle: &Handle, pieces: Pieces, stream: Stream) -> u64 {
        match self {
            Self::Alone => alone(pieces, stream),
            Self::Inline => inline(pieces, stream).await,
            Self::Yielding => yielding(pieces, stream).await,
            Self::OneByOne => one_by_one(handle, pieces, stream).await,
            Self::RunCpu => run_cpu(handle, pieces, stream).await,
            Self::SeveralAtOnce => several_at_once(handle, pieces, stream).await,
            Self::Batches => batches(handle, pieces, stream).await,
        }
    }
}

pub fn alone(pieces: Pieces, mut stream: Stream) -> u64 {
    let mut sum = 0;
    while let Some(piece) = stream.next_without_runtime() {
        sum += pieces.compute(piece);
    }
    stream.checked(sum)
}

async fn inline(pieces: Pieces, mut stream: Stream) -> u64 {
    let mut sum = 0;
    while let Some(piece) = stream.next().await {
        sum += pieces.compute(piece);
    }
    stream.checked(sum)
}

async fn yielding(pieces: Pieces, mut stream: Stream) -> u64 {
    let mut sum = 0;
    while let Some(piece) = stream.next().await {
        sum += pieces.compute(piece);
        yield_now().await;
    }
    stream.checked(sum)
}

async fn one_by_one(handle: &Handle, pieces: Pieces, mut stream: Stream) -> u64 {
    let mut sum = 0;
    while let Some(piece) = stream.next().await {
        let job = handle.spawn_cpu(move || pieces.compute(piece));
        sum += job.await.unwrap();
    }
    stream.checked(sum)
}

async fn run_cpu(handle: &Handle, pieces: Pieces, mut stream: Stream) -> u64 {
    let mut sum = 0;
    while let Some(piece) = stream.next().await {
        let job = handle.run_cpu(move || pieces.compute(piece));
        sum += job.await.unwrap();
    }
    stream.checked(sum)
}

async fn several_at_once(handle: &Handle, pieces: Pieces, mut stream: Stream) -> u64 {
    let most = 2 * handle.worker_threads();
    let mut in_flight = FuturesUnordered::new();
    let mut sum = 0;
    loop {
        while in_flight.len() < most {
            let Some(piece) = stream.next().await else {
                break;
            };
            in_flight.push(handle.spawn_cpu(move || pieces.compute(piece)));
        }
        match in_flight.next().await {
            Some(result) => sum += result.unwrap(),
            None => return stream.checked(sum),
        }
    }
}

async fn batches(handle: &Handle, pieces: Pieces, mut stream: Stream) -> u64 {
    let mut sum = 0;
    loop {
        let mut batch = Vec::with_capacity(pieces.per_batch);
        while batch.len() < pieces.per_batch {
            let Some(piece) = stream.next().await else {
                break;
            };
            batch.push(piece);
        }
        if batch.is_empty() {
            return stream.checked(sum);
        }
        let job = handle.spawn_cpu(move || {
            let results = batch.into_iter().map(|piece| pieces.compute(piece));
            results.sum::<u64>()
        });
        sum += job.await.unwrap();
    }
}
