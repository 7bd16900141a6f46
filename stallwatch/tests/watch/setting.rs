//! A runtime that is watched, and what its watch says.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Once};

use stallwatch::{SpanWatch, Stall, Watch, Watcher, watch};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;
use tracing_subscriber::prelude::*;

pub(crate) const FLAVORS: [Option<usize>; 3] = [Some(2), Some(1), None];

pub(crate) struct Watched {
    pub(crate) watcher: Watcher,
    pub(crate) io: Runtime,
    pub(crate) stalls: Receiver<Stall>,
    /// Set by the first stall, until the test unsets it.
    pub(crate) told: Arc<AtomicBool>,
    /// How many have run.
    pub(crate) probes: Arc<AtomicU64>,
}

pub(crate) fn watched(workers: Option<usize>) -> Watched {
    watched_as(workers, |watch| watch)
}

pub(crate) fn watched_as(workers: Option<usize>, set: impl FnOnce(Watch) -> Watch) -> Watched {
    let io = runtime(workers);
    let (send, stalls) = mpsc::channel();
    let told = Arc::new(AtomicBool::new(false));
    let probes = Arc::new(AtomicU64::new(0));
    let (tells, probed) = (told.clone(), probes.clone());
    let watch = Watch::new().on_stall(move |stall| {
        tells.store(true, SeqCst);
        let _ = send.send(stall.clone());
    });
    let watch = watch.on_probe(move |_| _ = probed.fetch_add(1, SeqCst));
    Watched {
        watcher: set(watch).start(io.handle()).unwrap(),
        io,
        stalls,
        told,
        probes,
    }
}

/// A runtime of so many workers, or one that is driven by `block_on` alone.
pub(crate) fn runtime(workers: Option<usize>) -> Runtime {
    let mut builder = match workers {
        Some(_) => Builder::new_multi_thread(),
        None => Builder::new_current_thread(),
    };
    if let Some(workers) = workers {
        builder.worker_threads(workers).thread_name("io");
    }
    builder.enable_all().build().unwrap()
}

impl Watched {
    /// It computes until a stall is told.
    pub(crate) fn compute(&self) -> impl Fn() + Send + Clone + 'static {
        let told = self.told.clone();
        move || while !told.load(SeqCst) {}
    }

    pub(crate) fn spawn_and_wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let task = self.io.spawn(future);
        self.io.block_on(task).unwrap()
    }

    /// Has this name told.
    pub(crate) fn stall_as(&self, name: &str) {
        self.told.store(false, SeqCst);
        let compute = self.compute();
        self.spawn_and_wait(watch(async move { compute() }).named(name));
    }

    /// Runs `f` in a task, with nothing watched around it, on a worker that the watch knows.
    pub(crate) fn run_where_a_probe_ran(&self, f: impl FnOnce() + Send + 'static) {
        self.run_beside(f, || ());
    }

    /// Runs `beside` on all the other workers at that time.
    pub(crate) fn run_beside(
        &self,
        f: impl FnOnce() + Send + 'static,
        beside: impl FnOnce() + Clone + Send + 'static,
    ) {
        // The others are held meanwhile, so that this one runs the probes.
        let others = 1..self.io.metrics().num_workers();
        let held: Vec<Sender<()>> = others.map(|_| hold(&self.io, beside.clone())).collect();
        let probes = self.probes.clone();
        self.spawn_and_wait(async move {
            two_probes(&probes).await;
            drop(held);
            f();
        });
    }
}

/// Polls until two probes have run: of these, one was sent after the call.
pub(crate) async fn two_probes(probes: &AtomicU64) {
    let before = probes.load(SeqCst);
    while probes.load(SeqCst) < before + 2 {
        yield_now().await;
    }
}

/// A worker waits until what is returned is dropped, and then runs `f`.
fn hold(io: &Runtime, f: impl FnOnce() + Send + 'static) -> Sender<()> {
    let (let_go, wait) = mpsc::channel();
    let (held, is_held) = mpsc::channel();
    drop(io.spawn(async move {
        held.send(()).unwrap();
        // An error: it is let go.
        let _ = wait.recv();
        f();
    }));
    is_held.recv().unwrap();
    let_go
}

/// The process's subscriber has the layer from now on.
pub(crate) fn see_spans() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::registry().with(SpanWatch::new());
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
}
