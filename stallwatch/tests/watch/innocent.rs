//! What may take as long as it likes is not told.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use stallwatch::watch;
use tokio::task::{block_in_place, spawn_blocking};

use crate::limit::time_limit;
use crate::setting::{Watched, see_spans, two_probes, watched};

/// All names that are told.
fn told(watched: &Watched) -> Vec<Option<String>> {
    let stalls = watched.stalls.try_iter();
    let names = stalls.map(|stall| stall.culprit().map(str::to_owned));
    names.collect()
}

fn names<const N: usize>(names: [&str; N]) -> Vec<Option<String>> {
    names.map(|name| Some(name.to_owned())).into()
}

/// It goes on for longer than two stalls that are told.
#[test]
fn a_thread_of_the_blocking_pool_may_stay_in_a_span() {
    let _limit = time_limit();
    see_spans();
    let watched = watched(Some(1));
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
    let watched = watched(Some(1));
    let compute = watched.compute();
    let task = async move { block_in_place(compute) };
    watched.spawn_and_wait(watch(task).named("in place"));
    let stall = watched.stalls.recv().unwrap();
    assert_eq!(stall.culprit(), Some("in place"));
}

/// A task that blocks in `block_in_place`, in code that is not watched.
#[cfg(target_os = "linux")]
struct InPlace {
    task: tokio::task::JoinHandle<()>,
    end: std::os::unix::net::UnixStream,
}

#[cfg(target_os = "linux")]
impl InPlace {
    /// Its thread is a worker that the watch knows, until it calls `block_in_place`.
    /// Returns once it has done so, and `then` has returned there.
    fn begin(watched: &Watched, then: impl FnOnce(&Arc<AtomicU64>) + Send + 'static) -> Self {
        use std::io::Read;
        use std::os::unix::net::UnixStream;

        let (mut reader, end) = UnixStream::pair().unwrap();
        let (begin, has_begun) = mpsc::channel();
        let probes = watched.probes.clone();
        let task = watched.io.spawn(async move {
            two_probes(&probes).await;
            block_in_place(|| {
                then(&probes);
                begin.send(()).unwrap();
                reader.read_exact(&mut [0]).unwrap();
            });
        });
        has_begun.recv().unwrap();
        Self { task, end }
    }

    fn end(mut self, watched: &Watched) {
        use std::io::Write;

        self.end.write_all(&[1]).unwrap();
        watched.io.block_on(self.task).unwrap();
    }
}

/// A worker that calls `block_in_place` gives its place to another thread. What it does
/// then keeps no task from its worker.
#[cfg(target_os = "linux")]
#[test]
fn a_thread_that_was_a_worker_may_block() {
    let _limit = time_limit();
    let watched = watched(Some(1));
    let in_place = InPlace::begin(&watched, |probes| {
        let (probed, wait) = mpsc::channel();
        let probes = probes.clone();
        drop(tokio::spawn(async move {
            two_probes(&probes).await;
            probed.send(()).unwrap();
        }));
        // Another thread is the worker now, and has run a probe.
        wait.recv().unwrap();
    });
    watched.stall_as("one");
    watched.stall_as("two");
    in_place.end(&watched);
    assert_eq!(told(&watched), names(["one", "two"]));
}

/// The same, on a runtime where probes are rare on most workers.
#[cfg(target_os = "linux")]
#[test]
fn block_in_place_in_code_that_is_not_watched_is_not_told() {
    let _limit = time_limit();
    let watched = watched(Some(4));
    let in_place = InPlace::begin(&watched, |_| ());
    watched.stall_as("one");
    watched.stall_as("two");
    in_place.end(&watched);
    assert_eq!(told(&watched), names(["one", "two"]));
}

/// A worker that does stand still meanwhile is in a poll that has a name.
#[cfg(target_os = "linux")]
#[test]
fn block_in_place_beside_a_stall_is_not_told() {
    let _limit = time_limit();
    let watched = watched(Some(4));
    let (begin, has_begun) = mpsc::channel();
    let let_go = Arc::new(AtomicBool::new(false));
    let wait = let_go.clone();
    let stall = async move {
        begin.send(()).unwrap();
        while !wait.load(SeqCst) {}
    };
    let stall = watched.io.spawn(watch(stall).named("beside"));
    has_begun.recv().unwrap();
    // Else it would end the next one, which ends once any stall is told.
    while !watched.told.load(SeqCst) {
        thread::yield_now();
    }
    let in_place = InPlace::begin(&watched, |_| ());
    // Each of them takes some looks.
    for name in ["one", "two", "three"] {
        watched.stall_as(name);
    }
    let_go.store(true, SeqCst);
    in_place.end(&watched);
    watched.io.block_on(stall).unwrap();
    assert_eq!(told(&watched), names(["beside", "one", "two", "three"]));
}

/// A runtime may have hundreds of threads that block, each in a span.
#[cfg(target_os = "linux")]
#[test]
fn no_file_is_open_for_a_thread_of_the_blocking_pool() {
    let _limit = time_limit();
    see_spans();
    let watched = watched(Some(1));
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
