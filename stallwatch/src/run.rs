//! The thread of a watch: it looks at what each thread is inside of, sends probes, and reports.
//!
//! To wake up is what a look costs: some 20 µs of CPU time. So the looks come close
//! together only while a thread is seen in one and the same poll.
//!
//! The functions of a stack are looked up on a thread of their own, which computes for
//! milliseconds to a second: at the lowest nice value, so that it does not compete with the
//! runtime in trouble. It calls nothing of the user's. The watch collects what it has found, and
//! does not wait for it for longer than [`NAMES`].

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinHandle;

use crate::detect::{CLOSE_PACE, PACE};
use crate::kernel;
use crate::limiter::{Key, Limiter};
use crate::log::{self, Subscriber};
use crate::pool::Pool;
use crate::scope;
use crate::stacks::{self, Samples};
use crate::stall::{Cause, Stall};
use crate::thread::{Found, Thread, View};
use crate::watcher::{Shared, Watcher};
use crate::watching::Watching;

/// From one probe to the next. They are rare, since each wakes a worker: twenty a second made
/// the slowest requests of a service slower still.
const PROBES: Duration = Duration::from_secs(1);

/// The same, while no worker parks: it may be stuck, and is awake anyway.
const CLOSE_PROBES: Duration = Duration::from_millis(50);

/// From one look at the system calls of threads in code that is not watched to the next.
const CALLS: Duration = Duration::from_millis(50);

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
    /// So that the events reach the subscriber of the thread that starts the watch.
    subscriber: Subscriber,
    watching: Watching,
    version: usize,
    /// By the address of the record.
    threads: HashMap<usize, Thread>,
    limiter: Limiter,
    unresolved: Vec<Unresolved>,
    /// The last one.
    probe: Option<Probe>,
    probes: u64,
    probed: Option<Instant>,
    /// Of each worker, at the last look.
    parks: Vec<u64>,
    looked_at_calls: Option<Instant>,
}

struct Probe {
    number: u64,
    done: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Probe {
    /// Its number, if it has not been polled yet.
    fn waiting(&self) -> Option<u64> {
        (!self.done.load(SeqCst)).then_some(self.number)
    }

    /// Whether the runtime has dropped it.
    fn is_lost(&self) -> bool {
        self.task.is_finished() && !self.done.load(SeqCst)
    }
}

impl Run {
    pub(crate) fn new(settings: Settings, runtime: &Handle) -> Self {
        Self {
            shared: Arc::default(),
            runtime: runtime.clone(),
            settings,
            subscriber: Subscriber::current(),
            watching: Watching::begin(),
            version: usize::MAX,
            threads: HashMap::new(),
            limiter: Limiter::default(),
            unresolved: Vec::new(),
            probe: None,
            probes: 0,
            probed: None,
            parks: Vec::new(),
            looked_at_calls: None,
        }
    }

    pub(crate) fn watcher(&self) -> Watcher {
        Watcher {
            shared: self.shared.clone(),
        }
    }

    pub(crate) fn run(mut self) {
        self.shared.begin();
        while !self.shared.is_stopped() && !self.probe.as_ref().is_some_and(Probe::is_lost) {
            self.watching.begin_look();
            self.find_threads();
            let stalls = self.look(Instant::now());
            for found in stalls {
                self.report(found);
            }
            self.tell_resolved(Instant::now());
            let is_close = self.threads.values().any(Thread::is_suspect);
            thread::park_timeout(if is_close { CLOSE_PACE } else { PACE });
        }
        self.tell_resolved(Instant::now() + NAMES);
        if let Some(probe) = self.probe {
            probe.task.abort();
        }
    }

    fn find_threads(&mut self) {
        let version = self.watching.version();
        if self.version == version {
            return;
        }
        self.version = version;
        let mut before = mem::take(&mut self.threads);
        for record in self.watching.records() {
            let address = Arc::as_ptr(&record) as usize;
            let thread = before.remove(&address);
            let thread = thread.unwrap_or_else(|| Thread::new(record));
            self.threads.insert(address, thread);
        }
    }

    fn look(&mut self, now: Instant) -> Vec<Found> {
        let mut stalls = Vec::new();
        let oldest = self.oldest_probe_of_a_worker();
        let is_due = |then: Option<Instant>, every| then.is_none_or(|then| now - then >= every);
        let view = View {
            now,
            threshold: self.settings.threshold,
            is_call_due: is_due(self.looked_at_calls, CALLS),
            waiting: self.probe.as_ref().and_then(Probe::waiting),
            is_only_worker: self.is_only_worker(),
            is_current_thread: self.runtime.runtime_flavor() == RuntimeFlavor::CurrentThread,
            runtime: self.runtime.id(),
            pools: &self.settings.pools,
            parks: self.parks(),
            in_polls: self.threads_in_polls(oldest),
        };
        if view.is_call_due {
            self.looked_at_calls = Some(now);
        }
        for thread in self.threads.values_mut() {
            stalls.extend(thread.look(&view, thread.has_probed_since(oldest)));
        }
        let is_still = view.parks == self.parks && view.have_stood_still(&self.parks) > 0;
        self.parks = view.parks;
        let probes = if is_still { CLOSE_PROBES } else { PROBES };
        if is_due(self.probed, probes) {
            self.probed = Some(now);
            self.probe();
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

    /// Whether the runtime has one worker, which is a thread of its own.
    fn is_only_worker(&self) -> bool {
        self.runtime.metrics().num_workers() == 1
            && self.runtime.runtime_flavor() == RuntimeFlavor::MultiThread
    }

    fn parks(&self) -> Vec<u64> {
        let metrics = self.runtime.metrics();
        let workers = 0..metrics.num_workers();
        workers
            .map(|worker| metrics.worker_park_unpark_count(worker))
            .collect()
    }

    fn probe(&mut self) {
        if self.probe.as_ref().and_then(Probe::waiting).is_some() {
            return;
        }
        let done = Arc::new(AtomicBool::new(false));
        self.probes += 1;
        let (polled, shared) = (done.clone(), self.shared.clone());
        let hooks = self.settings.on_probe.clone();
        let sent = Instant::now();
        let task = self.runtime.spawn(async move {
            let lag = sent.elapsed();
            scope::probed();
            polled.store(true, SeqCst);
            for hook in hooks.iter().filter(|_| !shared.is_stopped()) {
                log::call("a hook of `Watch::on_probe`", || hook(lag));
            }
        });
        self.probe = Some(Probe {
            number: self.probes,
            done,
            task,
        });
    }

    fn report(&mut self, found: Found) {
        let Found {
            culprit,
            thread,
            stall,
        } = found;
        if stall.is_of_pool() {
            self.shared.add_pool_stall();
        } else if stall.is_certain() {
            self.shared.add_stall(culprit);
        }
        let key = match culprit {
            Some(culprit) => Key::Named(culprit),
            None => Key::Unnamed(stall.cause.clone()),
        };
        let suppressed = self.limiter.admit(key, Instant::now());
        let is_to_be_sampled = suppressed.is_some() && *stall.cause() == Cause::Computes;
        let thread = thread.filter(|_| is_to_be_sampled);
        match thread.and_then(stacks::sample) {
            None => self.tell(&stall, suppressed),
            Some(sampled) => self.unresolved.push(Unresolved {
                stall,
                suppressed,
                stack: self.resolve(sampled),
                until: Instant::now() + NAMES,
            }),
        }
    }

    fn resolve(&self, sampled: Samples) -> Receiver<Option<String>> {
        let (found, stack) = mpsc::channel();
        let thread = thread::Builder::new().name(format!("{}-stack", self.settings.name));
        // An error drops `found`.
        let _ = thread.spawn(move || {
            kernel::give_way();
            let stack = log::call("the stack of a stall", || sampled.resolve());
            let _ = found.send(stack.flatten());
        });
        stack
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
                    self.tell(&unresolved.stall, unresolved.suppressed);
                }
            }
        }
    }

    fn tell(&self, stall: &Stall, suppressed: Option<u64>) {
        self.subscriber.in_scope(|| {
            for hook in &self.settings.on_stall {
                log::call("a hook of `Watch::on_stall`", || hook(stall));
            }
            if let Some(suppressed) = suppressed {
                // The subscriber is user code, and must not end the watch.
                log::call("the subscriber that a stall was logged to", || {
                    log::warn_of_stall(stall, suppressed);
                });
            }
        });
    }
}

/// A stall whose stack is being resolved.
struct Unresolved {
    stall: Stall,
    /// `None` if the stall itself is not logged.
    suppressed: Option<u64>,
    stack: Receiver<Option<String>>,
    until: Instant,
}
