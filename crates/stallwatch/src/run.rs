//! The thread of a watch: it looks at what each thread is inside of, sends probes, and reports.
//!
//! To wake up is what a look costs: about 20 µs of CPU time. So the looks come close
//! together only while a thread is seen in one and the same poll.
//!
//! The functions of a stack are looked up on a thread of their own, which computes for
//! milliseconds to a second: at the lowest nice value, so that it does not compete with the
//! runtime in trouble. It calls nothing of the user's. The watch collects what it has found, and
//! does not wait for it for longer than [`NAMES`].

use std::collections::HashMap;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::detect::{CLOSE_PACE, PACE};
use crate::kernel;
use crate::limiter::Limiter;
use crate::log;
use crate::pool::Pool;
use crate::record;
use crate::scope;
use crate::stacks::{self, Samples};
use crate::stall::{Cause, Stall};
use crate::thread::{Thread, View};
use crate::watcher::{Shared, Watcher};
use crate::watching::Watching;

/// From one probe to the next. They are rare, since each wakes a worker: twenty a second made
/// the slowest requests of a service slower still.
const PROBES: Duration = Duration::from_secs(1);

/// The same, while no worker parks: it may be stuck, and is awake anyway.
const CLOSE_PROBES: Duration = Duration::from_millis(50);

/// So long a stall waits for the names in its stack, and is then reported without: a full
/// machine leaves a niced thread little time.
const NAMES: Duration = Duration::from_secs(2);

type OnStall = Arc<dyn Fn(&Stall) + Send + Sync>;
type OnProbe = Arc<dyn Fn(Duration) + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) threshold: Duration,
    pub(crate) on_stall: Vec<OnStall>,
    pub(crate) on_probe: Vec<OnProbe>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) name: String,
}

pub(crate) struct Run {
    shared: Arc<Shared>,
    runtime: Handle,
    settings: Settings,
    watching: Watching,
    /// Of the records, as the threads were found.
    version: usize,
    /// By the address of the record.
    threads: HashMap<usize, Thread>,
    limiter: Limiter,
    unresolved: Vec<Unresolved>,
    /// How long the probe that is under way has waited, once it is polled. An error: the runtime
    /// has dropped it.
    probe: Option<Receiver<Duration>>,
    /// When the last one was sent.
    probed: Option<Instant>,
    /// Of each worker, at the last look.
    parks: Vec<u64>,
}

/// A stall whose stack is being resolved.
struct Unresolved {
    stall: Stall,
    /// As [`Limiter::allow`] has returned it.
    suppressed: u64,
    stack: Receiver<Option<String>>,
    until: Instant,
}

impl Run {
    pub(crate) fn new(settings: Settings, runtime: &Handle) -> Self {
        Self {
            shared: Arc::default(),
            runtime: runtime.clone(),
            settings,
            watching: Watching::begin(),
            version: usize::MAX,
            threads: HashMap::new(),
            limiter: Limiter::default(),
            unresolved: Vec::new(),
            probe: None,
            probed: None,
            parks: Vec::new(),
        }
    }

    pub(crate) fn watcher(&self) -> Watcher {
        Watcher {
            shared: self.shared.clone(),
        }
    }

    pub(crate) fn run(mut self) {
        self.shared.begin();
        while !self.shared.is_stopped() && self.take_probe() {
            self.watching.begin_look();
            self.find_threads();
            for stall in self.look(Instant::now()) {
                self.report(stall);
            }
            self.tell_resolved(Instant::now());
            let is_close = self.threads.values().any(Thread::is_suspect);
            thread::park_timeout(if is_close { CLOSE_PACE } else { PACE });
        }
        self.tell_resolved(Instant::now() + NAMES);
    }

    /// Returns whether the runtime is still there.
    fn take_probe(&mut self) -> bool {
        match self.probe.as_ref().map(Receiver::try_recv) {
            Some(Err(TryRecvError::Disconnected)) => return false,
            Some(Ok(lag)) => {
                self.probe = None;
                for hook in &self.settings.on_probe {
                    call(|| hook(lag));
                }
            }
            Some(Err(TryRecvError::Empty)) | None => {}
        }
        true
    }

    fn find_threads(&mut self) {
        let version = record::version();
        if mem::replace(&mut self.version, version) == version {
            return;
        }
        let mut before = mem::take(&mut self.threads);
        for record in record::all() {
            let address = Arc::as_ptr(&record) as usize;
            let thread = before.remove(&address);
            let thread = thread.unwrap_or_else(|| Thread::new(record));
            self.threads.insert(address, thread);
        }
    }

    fn look(&mut self, now: Instant) -> Vec<Stall> {
        let oldest = self.oldest_probe_of_a_worker();
        let view = View {
            now,
            threshold: self.settings.threshold,
            runtime: self.runtime.id(),
            is_multi_thread: self.runtime.runtime_flavor() == RuntimeFlavor::MultiThread,
            pools: &self.settings.pools,
            parks: self.parks(),
            in_polls: self.threads_in_polls(oldest),
        };
        let threads = self.threads.values_mut();
        let stalls =
            threads.filter_map(|thread| thread.look(&view, thread.has_probed_since(oldest)));
        let stalls = stalls.collect();
        let is_still = view.parks == self.parks && view.have_stood_still(&self.parks) > 0;
        self.parks = view.parks;
        let every = if is_still { CLOSE_PROBES } else { PROBES };
        let is_due = self.probed.is_none_or(|then| now - then >= every);
        if is_due && self.probe.is_none() {
            self.probed = Some(now);
            self.probe = Some(self.send_probe());
        }
        stalls
    }

    /// A thread that has run a probe was a worker of the runtime then. `block_in_place` makes
    /// it one of the blocking pool, and another thread the worker. So of all these threads,
    /// only those that ran the latest probes count, as many as the runtime has workers.
    fn oldest_probe_of_a_worker(&self) -> Option<u64> {
        let io = Some(self.runtime.id());
        let threads = self.threads.values();
        let own = threads.filter(|thread| thread.record.runtime() == io);
        let mut probes: Vec<u64> = own.filter_map(|own| own.record.last_probe()).collect();
        probes.sort_unstable_by(|one, other| other.cmp(one));
        probes.truncate(self.runtime.metrics().num_workers());
        probes.last().copied()
    }

    fn threads_in_polls(&self, oldest: Option<u64>) -> usize {
        let is_in_poll = |thread: &&Thread| {
            thread.is_in_poll(self.runtime.id(), thread.has_probed_since(oldest))
        };
        self.threads.values().filter(is_in_poll).count()
    }

    fn parks(&self) -> Vec<u64> {
        let metrics = self.runtime.metrics();
        let workers = 0..metrics.num_workers();
        workers
            .map(|worker| metrics.worker_park_unpark_count(worker))
            .collect()
    }

    fn send_probe(&self) -> Receiver<Duration> {
        let (polled, probe) = mpsc::channel();
        let sent = Instant::now();
        self.runtime.spawn(async move {
            let lag = sent.elapsed();
            scope::probed();
            // An error: the watch has ended.
            let _ = polled.send(lag);
        });
        probe
    }

    fn report(&mut self, stall: Stall) {
        self.shared.count(&stall);
        let culprit = stall.culprit.clone();
        let culprit = culprit.unwrap_or_else(|| stall.cause.to_string());
        let suppressed = self.limiter.allow(culprit, Instant::now());
        let to_be_sampled = stall.thread_id.filter(|_| stall.cause == Cause::Computes);
        let sampled = suppressed.and_then(|suppressed| {
            let samples = stacks::sample(to_be_sampled?)?;
            Some((suppressed, self.resolve(samples)))
        });
        match sampled {
            None => self.tell(&stall, suppressed),
            Some((suppressed, stack)) => self.unresolved.push(Unresolved {
                stall,
                suppressed,
                stack,
                until: Instant::now() + NAMES,
            }),
        }
    }

    fn resolve(&self, samples: Samples) -> Receiver<Option<String>> {
        let name = format!("{}-stack", self.settings.name);
        of_low_thread(name, || samples.resolve())
    }

    /// Tells of the stalls whose stack is there now, or late.
    fn tell_resolved(&mut self, now: Instant) {
        for mut unresolved in mem::take(&mut self.unresolved) {
            match unresolved.stack.try_recv() {
                Err(TryRecvError::Empty) if now < unresolved.until => {
                    self.unresolved.push(unresolved);
                }
                stack => {
                    unresolved.stall.stack = stack.ok().flatten();
                    self.tell(&unresolved.stall, Some(unresolved.suppressed));
                }
            }
        }
    }

    fn tell(&self, stall: &Stall, suppressed: Option<u64>) {
        for hook in &self.settings.on_stall {
            call(|| hook(stall));
        }
        if let Some(suppressed) = suppressed {
            call(|| log::warn_of_stall(stall, suppressed));
        }
    }
}

/// Has a thread of the lowest nice value compute it.
fn of_low_thread<T: Send + 'static>(
    name: String,
    compute: impl FnOnce() -> T + Send + 'static,
) -> Receiver<T> {
    let (found, result) = mpsc::channel();
    // An error or a panic drops `found`.
    let _ = thread::Builder::new().name(name).spawn(move || {
        kernel::give_way();
        let _ = found.send(compute());
    });
    result
}

/// Calls what is the user's, a hook or the subscriber, which must not end the watch. The process's
/// panic hook has said what panicked.
fn call(f: impl FnOnce()) {
    // The payload's destructor may panic, too: leak it.
    let _ = catch_unwind(AssertUnwindSafe(f)).map_err(mem::forget);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Once, stacks were resolved at the nice value of the workers, beside the runtime in trouble.
    #[test]
    fn the_thread_that_resolves_a_stack_has_the_lowest_nice_value() {
        let own = || rustix::process::getpriority_process(None).unwrap();
        let before = own();
        let nice = of_low_thread("low-stack".into(), own).recv().unwrap();
        assert_eq!((nice, own()), (19, before));
    }
}
