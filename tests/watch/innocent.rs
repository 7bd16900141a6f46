//! What may take as long as it likes is not told.

use std::sync::{Arc, Mutex, mpsc};

use crate::setting::{lane, see_spans, two_probes, watched};
use crate::support::time_limit;
use tokio::task::{block_in_place, spawn_blocking};
use twolane::{Backend, Watch, watch};

/// All names that are told, but for suspicions.
fn told(watched: &crate::setting::Watched) -> Vec<Option<String>> {
    let stalls = watched.stalls.try_iter().filter(twolane::Stall::is_certain);
    let names = stalls.map(|stall| stall.culprit().map(str::to_owned));
    names.collect()
}

fn names(names: [&str; 2]) -> Vec<Option<String>> {
    names.map(|name| Some(name.to_owned())).into()
}

/// It goes on for longer than two stalls that are told.
#[test]
fn a_thread_of_the_blocking_pool_may_stay_in_a_span() {
    let _limit = time_limit();
    see_spans();
    let watched = watched(Backend::Rayon, Some(1));
    let (let_go, wait) = mpsc::channel::<()>();
    let (begin, has_begun) = mpsc::channel();
    let waits = move || {
        tracing::info_span!("waits").in_scope(|| {
            begin.send(()).unwrap();
            let _ = wait.recv();
        });
    };
    let _entered = watched.io.enter();
    let task = spawn_blocking(waits);
    has_begun.recv().unwrap();
    watched.stall_as("one");
    watched.stall_as("two");
    drop(let_go);
    watched.io.block_on(task).unwrap();
    assert_eq!(told(&watched), names(["one", "two"]));
}

/// A limit: the future does not keep a worker meanwhile, and yet it is told.
#[test]
fn block_in_place_inside_of_a_future_that_is_watched_is_told() {
    let _limit = time_limit();
    let watched = watched(Backend::Rayon, Some(1));
    let compute = watched.compute();
    let task = async move { block_in_place(compute) };
    watched.spawn_and_wait(watch(task).named("in place"));
    let stall = watched.stalls.recv().unwrap();
    assert_eq!(stall.culprit(), Some("in place"));
}

/// A worker that calls `block_in_place` gives its place to another thread. What it does
/// then keeps no task from its worker.
#[cfg(target_os = "linux")]
#[test]
fn a_thread_that_was_a_worker_may_block() {
    use std::io::{Read, Write};

    let _limit = time_limit();
    let watched = watched(Backend::Rayon, Some(1));
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let (begin, has_begun) = mpsc::channel();
    let cpu = watched.cpu.handle();
    let task = watched.io.spawn(async move {
        // It is a worker that the watch knows.
        two_probes(&cpu).await;
        let (probed, wait) = mpsc::channel();
        drop(tokio::spawn(async move {
            two_probes(&cpu).await;
            probed.send(()).unwrap();
        }));
        block_in_place(|| {
            // Another thread is the worker now, and has run a probe.
            wait.recv().unwrap();
            begin.send(()).unwrap();
            reader.read_exact(&mut [0]).unwrap();
        });
    });
    has_begun.recv().unwrap();
    watched.stall_as("one");
    watched.stall_as("two");
    writer.write_all(&[1]).unwrap();
    watched.io.block_on(task).unwrap();
    assert_eq!(told(&watched), names(["one", "two"]));
}

/// The same, on a runtime where probes are rare on most workers.
#[cfg(target_os = "linux")]
#[test]
fn block_in_place_in_code_that_is_not_watched_is_not_told() {
    use std::io::{Read, Write};

    let _limit = time_limit();
    let watched = watched(Backend::Rayon, Some(4));
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let (begin, has_begun) = mpsc::channel();
    let cpu = watched.cpu.handle();
    let task = watched.io.spawn(async move {
        two_probes(&cpu).await;
        block_in_place(|| {
            begin.send(()).unwrap();
            reader.read_exact(&mut [0]).unwrap();
        });
    });
    has_begun.recv().unwrap();
    watched.stall_as("one");
    watched.stall_as("two");
    writer.write_all(&[1]).unwrap();
    watched.io.block_on(task).unwrap();
    assert_eq!(told(&watched), names(["one", "two"]));
}

/// Two lanes have one I/O runtime.
#[test]
fn a_job_of_another_lane_is_not_told() {
    let _limit = time_limit();
    let theirs = watched(Backend::Rayon, Some(2));
    let (send, stalls) = mpsc::channel();
    let watch = Watch::new().on_stall(move |stall| drop(send.send(stall.clone())));
    let own = lane(Backend::Rayon, &theirs.io, watch);
    let compute = theirs.compute();
    let job = theirs.cpu.spawn(async move { compute() });
    job.wait().unwrap();
    assert_eq!(theirs.cpu.metrics().cpu_stalls, 1);
    // It sees what both share.
    theirs.stall_as("shared");
    let told = stalls.recv().unwrap();
    assert_eq!(told.culprit(), Some("shared"));
    assert_eq!(own.metrics().cpu_stalls, 0);
}

/// A runtime may have hundreds of threads that block, each in a span.
#[cfg(target_os = "linux")]
#[test]
fn no_file_is_open_for_a_thread_of_the_blocking_pool() {
    let _limit = time_limit();
    see_spans();
    let watched = watched(Backend::Rayon, Some(1));
    let (let_go, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let (begin, have_begun) = mpsc::channel();
    let _entered = watched.io.enter();
    let before = open_files();
    for _ in 0..100 {
        let (begin, wait) = (begin.clone(), wait.clone());
        drop(spawn_blocking(move || {
            tracing::info_span!("waits").in_scope(|| {
                begin.send(()).unwrap();
                let _ = wait.lock().unwrap().recv();
            });
        }));
    }
    have_begun.iter().take(100).for_each(drop);
    // The watch has looked at all threads by then.
    watched.stall_as("one");
    watched.stall_as("two");
    assert!(open_files() < before + 100);
    drop(let_go);
}

#[cfg(target_os = "linux")]
fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
