//! A runtime that is watched, and what its watch says.

#[cfg(target_os = "linux")]
use std::{collections::HashSet, fs, path::Path};

use std::cell::RefCell;
use std::io::{PipeWriter, Read};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Once};
use std::{mem, thread};

use stallwatch::{Cause, SpanWatch, Stall, Watch, Watcher, watch};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;
use tracing_subscriber::prelude::*;

use crate::gate::{Gate, gate};
use crate::limit::limit_this_thread;

/// How many workers; or none, on a runtime that is driven by `block_on` alone.
const FLAVORS: [Option<usize>; 3] = [Some(2), Some(1), None];

pub(crate) struct Watched {
    pub(crate) watcher: Arc<Watcher>,
    pub(crate) io: Runtime,
    pub(crate) stalls: Receiver<Stall>,
    /// What was told while the test waited for another one.
    others: RefCell<Vec<Stall>>,
    /// How many have run.
    pub(crate) probes: Arc<AtomicU64>,
}

pub(crate) fn watched(workers: Option<usize>) -> Watched {
    watched_as(workers, |watch| watch)
}

/// Runs the test on each flavor.
pub(crate) fn each_flavor(test: impl Fn(Watched)) {
    for workers in FLAVORS {
        println!("{workers:?} workers");
        test(watched(workers));
    }
}

/// A watch, and what its hook gets.
pub(crate) fn hooked() -> (Watch, Receiver<Stall>) {
    let (send, stalls) = mpsc::channel();
    let watch = Watch::new().on_stall(move |stall| drop(send.send(stall.clone())));
    (watch, stalls)
}

pub(crate) fn watched_as(workers: Option<usize>, set: impl FnOnce(Watch) -> Watch) -> Watched {
    let io = runtime(workers);
    let (watch, stalls) = hooked();
    let probes = Arc::new(AtomicU64::new(0));
    let probed = probes.clone();
    let watch = watch.on_probe(move |_| _ = probed.fetch_add(1, SeqCst));
    Watched {
        watcher: Arc::new(set(watch).start(io.handle()).unwrap()),
        io,
        stalls,
        others: RefCell::default(),
        probes,
    }
}

/// The test has its time limit by that.
pub(crate) fn runtime(workers: Option<usize>) -> Runtime {
    limit_this_thread();
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
    /// It computes until the watch has counted it. (It is told a little later. By then no thread
    /// computes, so the watch takes no samples, and the thread that would look up their functions
    /// at nice 19 need not wait for a core.)
    pub(crate) fn compute(&self, name: &str) -> impl Fn() + Send + Clone + 'static {
        let (watcher, name) = (self.watcher.clone(), name.to_owned());
        let before = counted(&watcher, &name);
        move || {
            while counted(&watcher, &name) == before {
                // The watch takes the lock of the counters, too.
                (0..500).for_each(|_| std::hint::spin_loop());
            }
        }
    }

    /// What is told of this name next, or of a span by this name.
    pub(crate) fn stall_of(&self, name: &str) -> Stall {
        let is_it = |stall: &Stall| stall.culprit().is_some_and(|told| is(told, name));
        let mut others = self.others.borrow_mut();
        if let Some(known) = others.iter().position(is_it) {
            return others.remove(known);
        }
        loop {
            let stall = self.stalls.recv().unwrap();
            if is_it(&stall) {
                return stall;
            }
            others.push(stall);
        }
    }

    pub(crate) fn spawn_and_wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let task = self.io.spawn(future);
        self.io.block_on(task).unwrap()
    }

    /// Runs what blocks until `let_go` is dropped: once its stall is told.
    pub(crate) fn until_told(
        &mut self,
        is_it: impl Fn(&Stall) -> bool + Send + 'static,
        let_go: impl Send + 'static,
        run: impl FnOnce(&Self),
    ) -> Stall {
        let stalls = mem::replace(&mut self.stalls, mpsc::channel().1);
        let release = thread::spawn(move || {
            let stall = stalls.iter().find(is_it);
            drop(let_go);
            (stall.unwrap(), stalls)
        });
        run(self);
        let stall;
        (stall, self.stalls) = release.join().unwrap();
        stall
    }

    /// Of what is told so far and was not looked at.
    pub(crate) fn assert_none_was_told_of(&self, names: &[&str]) {
        for stall in self.others.take().into_iter().chain(self.stalls.try_iter()) {
            let culprit = stall.culprit().unwrap_or_default();
            assert!(!names.iter().any(|name| is(culprit, name)), "{stall}");
        }
    }

    pub(crate) fn has_counted_unnamed(&self) -> bool {
        let culprits = self.watcher.stalls_by_culprit();
        culprits.iter().any(|(culprit, _)| culprit.is_none())
    }

    /// That of [`blocks`], in code that is not watched.
    pub(crate) fn assert_no_call_was_told(&self) {
        for stall in self.others.take().into_iter().chain(self.stalls.try_iter()) {
            let is_it = stall.culprit().is_none() && *stall.cause() == Cause::Blocks(Some("read"));
            assert!(!is_it, "{stall}");
        }
    }

    /// Has a stall of this name counted.
    pub(crate) fn stall_as(&self, name: &str) {
        let compute = self.compute(name);
        self.spawn_and_wait(watch(async move { compute() }).named(name));
    }

    /// Runs `f` in a task, with nothing watched around it, on a worker that the watch knows.
    pub(crate) fn run_where_a_probe_ran(&self, f: impl FnOnce() + Send + 'static) {
        // The others are held meanwhile, so that this one runs the probes.
        let others = 1..self.io.metrics().num_workers();
        let held: Vec<Gate> = others.map(|_| hold(&self.io)).collect();
        let probes = self.probes.clone();
        self.spawn_and_wait(async move {
            two_probes(&probes).await;
            drop(held);
            f();
        });
    }
}

/// Whether this culprit is the name, or a span by the name, which is told with its place.
fn is(culprit: &str, name: &str) -> bool {
    let rest = culprit.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
}

/// How many stalls of the name, and of pools, the watch has found.
fn counted(watcher: &Watcher, name: &str) -> u64 {
    let culprits = watcher.stalls_by_culprit().into_iter();
    let own = culprits.filter(|(culprit, _)| culprit.is_some_and(|of| is(&of.to_string(), name)));
    own.map(|(_, count)| count).sum::<u64>() + watcher.pool_stalls()
}

/// A call that blocks until what is returned with it is dropped.
pub(crate) fn blocks() -> (impl FnOnce() + Send + 'static, PipeWriter) {
    let (mut reader, let_go) = std::io::pipe().unwrap();
    let read = move || assert_eq!(reader.read(&mut [0]).unwrap(), 0);
    (read, let_go)
}

/// Polls until two probes have run: of these, one was sent after the call.
pub(crate) async fn two_probes(probes: &AtomicU64) {
    let before = probes.load(SeqCst);
    while probes.load(SeqCst) < before + 2 {
        yield_now().await;
    }
}

/// A worker waits until the gate opens.
pub(crate) fn hold(io: &Runtime) -> Gate {
    let (gate, stay) = gate();
    io.spawn(async move { stay() });
    gate.is_reached();
    gate
}

/// The process's subscriber has the layer from now on.
pub(crate) fn see_spans() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::registry().with(SpanWatch::new());
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
}

/// The threads whose files this process has open.
#[cfg(target_os = "linux")]
pub(crate) fn with_open_files() -> HashSet<String> {
    let files = fs::read_dir("/proc/self/fd").unwrap();
    // An error: it was closed meanwhile.
    let paths = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    let thread = |path: &Path| {
        let is_schedstat = path.file_name()? == "schedstat";
        let thread = path.parent()?.file_name()?.to_str()?.to_owned();
        is_schedstat.then_some(thread)
    };
    paths.filter_map(|path| thread(&path)).collect()
}

/// `/proc/thread-self` is a link to `PID/task/TID`.
#[cfg(target_os = "linux")]
pub(crate) fn this_thread() -> String {
    let link = fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().to_owned()
}
