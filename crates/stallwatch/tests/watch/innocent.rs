//! What may take as long as it likes is not told.

use std::io::PipeWriter;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, mpsc};

use stallwatch::watch;
use tokio::task::block_in_place;

use crate::gate::gate;
use crate::setting::{
    Watched, blocks, see_spans, this_thread, two_probes, watched, with_open_files,
};
use crate::wait::wait_until;

/// A runtime may have hundreds of them. They go on for longer than two stalls that are told; by then
/// the watch has looked at all threads, and has no file open for these.
#[test]
fn threads_of_the_blocking_pool_may_stay_in_a_span() {
    see_spans();
    let watched = watched(Some(1));
    let (gate, stay) = gate();
    let (begin, have_begun) = mpsc::channel();
    let all = (0..10).map(|_| {
        let (begin, stay) = (begin.clone(), stay.clone());
        watched.io.spawn_blocking(move || {
            tracing::info_span!("waits").in_scope(|| {
                begin.send(this_thread()).unwrap();
                stay();
            });
        })
    });
    let waiting: Vec<_> = all.collect();
    let threads = have_begun.iter().take(10).collect();
    watched.stall_as("one");
    watched.stall_as("two");
    assert!(with_open_files().is_disjoint(&threads));
    drop(gate);
    for waits in waiting {
        watched.io.block_on(waits).unwrap();
    }
    watched.stall_of("one");
    watched.stall_of("two");
    watched.assert_none_was_told_of(&["waits"]);
}

/// A limit: the future does not keep a worker meanwhile, and yet it is told.
#[test]
fn block_in_place_inside_of_a_future_that_is_watched_is_told() {
    let watched = watched(Some(1));
    let compute = watched.compute("in place");
    let task = async move { block_in_place(compute) };
    watched.spawn_and_wait(watch(task).named("in place"));
    watched.stall_of("in place");
}

/// A task that blocks in `block_in_place`, in code that is not watched.
struct InPlace {
    task: tokio::task::JoinHandle<()>,
    let_go: PipeWriter,
}

impl InPlace {
    /// Its thread is a worker that the watch knows, until it calls `block_in_place`.
    /// Returns once it has done so, and `then` has returned there.
    fn begin(watched: &Watched, then: impl FnOnce(&Arc<AtomicU64>) + Send + 'static) -> Self {
        let (read, let_go) = blocks();
        let (begin, has_begun) = mpsc::channel();
        let probes = watched.probes.clone();
        let task = watched.io.spawn(async move {
            two_probes(&probes).await;
            block_in_place(|| {
                then(&probes);
                begin.send(()).unwrap();
                read();
            });
        });
        has_begun.recv().unwrap();
        Self { task, let_go }
    }

    /// Each of these stalls takes some looks. `unnamed.rs` has the same call told where it
    /// keeps a worker.
    fn assert_not_told_beside(self, watched: &Watched, names: &[&str]) {
        for name in names {
            watched.stall_as(name);
        }
        drop(self.let_go);
        watched.io.block_on(self.task).unwrap();
        for name in names {
            watched.stall_of(name);
        }
        watched.assert_no_call_was_told();
    }
}

/// A worker that calls `block_in_place` gives its place to another thread. What it does
/// then keeps no task from its worker.
#[test]
fn a_thread_that_was_a_worker_may_block() {
    let watched = watched(Some(1));
    let in_place = InPlace::begin(&watched, |probes| {
        // Another thread is the worker now, and has run a probe.
        let before = probes.load(SeqCst);
        wait_until(|| probes.load(SeqCst) >= before + 2);
    });
    in_place.assert_not_told_beside(&watched, &["one", "two"]);
}

/// The same, on a runtime where probes are rare on most workers.
#[test]
fn block_in_place_in_code_that_is_not_watched_is_not_told() {
    let watched = watched(Some(4));
    InPlace::begin(&watched, |_| ()).assert_not_told_beside(&watched, &["one", "two"]);
    // A worker that does stand still meanwhile is in a poll that has a name.
    let (gate, stay) = gate();
    let stall = async move { stay() };
    let stall = watched.io.spawn(watch(stall).named("beside"));
    watched.stall_of("beside");
    let in_place = InPlace::begin(&watched, |_| ());
    in_place.assert_not_told_beside(&watched, &["three", "four", "five"]);
    drop(gate);
    watched.io.block_on(stall).unwrap();
}
