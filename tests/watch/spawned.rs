//! What a job gives to `tokio::spawn` computes on the I/O lane, and has no name there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::setting::{Watched, watched};
use crate::support::time_limit;
use twolane::watch::Cause;

fn assert_told(watched: &Watched) {
    let stall = watched.stalls.recv().unwrap();
    assert_eq!((stall.culprit(), stall.cause()), (None, &Cause::Computes));
    assert!(stall.thread().starts_with("tokio-rt-worker"), "{stall}");
    let text = stall.to_string();
    for word in [
        "`tokio::spawn`",
        "spawn_cpu",
        "`Handle::spawn`",
        "`in_cpu_context`",
    ] {
        assert!(text.contains(word), "{text}");
    }
    assert!(watched.cpu.handle().watcher().unwrap().stalls() > 0);
}

/// With two workers the other one is free.
#[test]
fn what_a_job_spawns_by_tokio_is_told() {
    let _limit = time_limit();
    for workers in [1, 2] {
        let watched = watched(workers);
        let handle = watched.cpu.handle().clone();
        let other = (workers > 1).then(|| hold(&watched.io));
        let compute = watched.compute();
        let job = watched.cpu.spawn(async move {
            let computes = tokio::spawn(async move {
                // The watch knows a worker once that has run a probe: of two the latter begins here.
                let before = handle.io_lag().count();
                while handle.io_lag().count() < before + 2 {
                    tokio::task::yield_now().await;
                }
                drop(other);
                compute();
            });
            computes.await
        });
        job.wait().unwrap().unwrap();
        assert_told(&watched);
    }
}

/// A worker waits until what is returned is dropped.
fn hold(io: &Runtime) -> std::sync::mpsc::Sender<()> {
    let (let_go, wait) = std::sync::mpsc::channel();
    let (held, is_held) = std::sync::mpsc::channel();
    io.spawn(async move {
        held.send(()).unwrap();
        // An error: it is let go.
        let _ = wait.recv();
    });
    is_held.recv().unwrap();
    let_go
}

/// As the parts of a query: each computes for a moment, and hands on what it has.
#[test]
fn short_polls_of_many_tasks_are_told() {
    let _limit = time_limit();
    let watched = watched(2);
    let told = watched.told.clone();
    let job = watched.cpu.spawn(async move {
        let parts = (0..8).map(|_| part(told.clone()));
        for part in parts.collect::<Vec<_>>() {
            part.await.unwrap();
        }
    });
    job.wait().unwrap();
    assert_told(&watched);
}

fn part(told: Arc<AtomicBool>) -> tokio::task::JoinHandle<()> {
    let (send, mut receive) = mpsc::channel(1);
    tokio::spawn(async move {
        while !told.load(SeqCst) {
            compute_some();
            if send.send(()).await.is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        while receive.recv().await.is_some() {
            compute_some();
        }
    })
}

fn compute_some() {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(5) {}
}
