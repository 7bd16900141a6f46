//! The thread of a watch: it looks at what each thread is inside of, sends probes, and reports.
//!
//! To wake up is what a look costs: about 20 µs of CPU time, and 80 on an idle core. So the looks
//! come close together only while a thread is seen in one and the same poll, or a poll has just taken
//! long; and they are rare while nothing moves. What is missed between two looks the thread itself
//! notes at its end (`ended.rs`).

use std::collections::HashMap;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::detect::{CLOSE_PACE, LATE, PACE};
use crate::lag::Lag;
use crate::limiter::Limiter;
use crate::log;
use crate::pool::Pool;
use crate::probe::{Probes, parks};
use crate::record;
use crate::stall::Stall;
use crate::stolen::Stolen;
use crate::thread::{Thread, View};
use crate::unnamed::{LONG, Turns, does_harm};
use crate::watcher::{Shared, Watcher};
use crate::watching::Watching;

/// From one look to the next, while nothing moves.
const QUIET_PACE: Duration = Duration::from_millis(200);

/// So long the looks stay close together after a poll that took long: the next one of its kind may
/// then be seen while it lasts, with its call.
const ALERT: Duration = Duration::from_secs(1);

type OnStall = Arc<dyn Fn(&Stall) + Send + Sync>;
type OnProbe = Arc<dyn Fn(Lag) + Send + Sync>;

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
    probes: Probes,
    /// No look is late since then.
    in_time: Instant,
    looked: Instant,
    stolen: Stolen,
    /// Until then a poll that takes long is expected.
    alert: Option<Instant>,
    /// Of each worker, at the last look.
    parks: Vec<u64>,
    turns: Turns,
}

impl Run {
    pub(crate) fn new(settings: Settings, runtime: &Handle) -> Self {
        Self {
            shared: Arc::default(),
            runtime: runtime.clone(),
            watching: Watching::begin(settings.threshold),
            settings,
            version: usize::MAX,
            threads: HashMap::new(),
            limiter: Limiter::default(),
            probes: Probes::default(),
            in_time: Instant::now(),
            looked: Instant::now(),
            stolen: Stolen::default(),
            alert: None,
            parks: Vec::new(),
            turns: Turns::default(),
        }
    }

    pub(crate) fn watcher(&self) -> Watcher {
        Watcher {
            shared: self.shared.clone(),
        }
    }

    pub(crate) fn run(mut self) {
        self.shared.begin();
        while !self.shared.is_stopped() {
            // An error: the runtime is gone.
            let Ok(lag) = self.probes.take() else { break };
            if let Some(lag) = lag {
                for hook in &self.settings.on_probe {
                    call(|| hook(lag));
                }
            }
            self.watching.begin_look();
            self.find_threads();
            let now = Instant::now();
            if now - mem::replace(&mut self.looked, now) > LATE {
                self.in_time = now;
            }
            let is_idle = self.is_idle();
            for stall in self.look(now, is_idle) {
                self.report(&stall);
            }
            let threads = self.threads.values_mut();
            let seen = || {
                let in_epoll = threads.filter_map(Thread::in_epoll);
                (self.parks.clone(), in_epoll.collect())
            };
            self.probes.send(&self.runtime, now, is_idle, seen);
            let pace = (now, self.settings.threshold);
            let is_late = self.is_multi_thread() && self.probes.is_late(pace);
            let is_alert = self.alert.is_some_and(|until| now < until);
            let is_close = is_alert || is_late || self.threads.values().any(Thread::is_suspect);
            thread::park_timeout(match is_close {
                true => CLOSE_PACE,
                false if is_idle => QUIET_PACE,
                false => PACE,
            });
        }
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

    /// Whether nothing has moved since the last look.
    fn is_idle(&mut self) -> bool {
        /// A worker goes on, polls the probe and parks, and may wake another one.
        const OF_A_PROBE: u64 = 4;
        let before = mem::replace(&mut self.parks, parks(&self.runtime));
        let workers = before.iter().zip(&self.parks);
        let moved: u64 = workers.map(|(before, now)| now - before).sum();
        let is_awake = self.parks.iter().any(|parks| parks % 2 == 0);
        // A `current_thread` runtime that nobody drives polls no probe.
        let is_driven = self.is_multi_thread() || !self.probes.is_under_way();
        let (io, pools) = (self.runtime.id(), &self.settings.pools);
        let threads = self.threads.values_mut();
        let have_moved = threads.map(|thread| thread.has_moved(io, pools));
        // Each of them is asked, for the next time.
        let has_any_moved = have_moved.fold(false, |any, one| any | one);
        !has_any_moved && moved <= OF_A_PROBE && !(moved == 0 && is_awake && is_driven)
    }

    fn look(&mut self, now: Instant, is_idle: bool) -> Vec<Stall> {
        let oldest = self.oldest_probe_of_a_worker();
        let io = self.runtime.id();
        let is_in_poll = |thread: &Thread| thread.is_in_poll(io, thread.has_probed_since(oldest));
        let threshold = self.settings.threshold;
        let late = self.probes.are_late((now, threshold));
        let is_told = self.is_multi_thread() && !self.threads.values().any(is_in_poll);
        if !is_told {
            self.turns = Turns::default();
        }
        let metrics = is_told.then(|| self.runtime.metrics());
        let stand = metrics.and_then(|metrics| self.turns.stand_since(now, &metrics));
        let mut view = View {
            now,
            threshold,
            runtime: io,
            is_multi_thread: self.is_multi_thread(),
            pools: &self.settings.pools,
            in_time: self.in_time,
            stolen: self.stolen.lately(now),
            parks: self.parks.clone(),
            stand_since: stand,
            harm_since: None,
        };
        let all_park = view.parks.iter().all(|parks| parks % 2 == 1);
        let mut stalls = Vec::new();
        for thread in self.threads.values_mut() {
            let is_worker = thread.has_probed_since(oldest);
            let ended = thread.ended(&view, is_worker);
            if !ended.is_empty() {
                self.alert = Some(now + ALERT);
                let stolen = self.stolen.by(now);
                let was_stuck = |ended| thread.was_stuck(&view, ended, stolen);
                stalls.extend(ended.iter().filter_map(was_stuck));
            }
            thread.note_times(&view, is_idle && all_park);
            thread.note_state(&view, is_worker);
        }
        let harm = stand.filter(|stand| does_harm(now - *stand, threshold, late));
        view.harm_since = harm.and_then(|stand| {
            let is_sure = now - stand >= LONG || !self.may_lack_core(stand);
            match is_sure {
                true => Some(stand),
                false => self.turns.last(),
            }
        });
        for thread in self.threads.values_mut() {
            let is_worker = thread.has_probed_since(oldest);
            stalls.extend(thread.look(&view, is_worker));
        }
        stalls
    }

    /// Whether a worker may have stood since then for want of a core: a thread that is known lacks one; or not all
    /// workers are known, and more are awake than known threads run or wait for a core.
    fn may_lack_core(&self, stand: Instant) -> bool {
        let threads = || self.threads.values();
        let known = self.latest_probes().len();
        let run = threads().filter(|thread| thread.runs()).count();
        let has_others = known < self.runtime.metrics().num_workers();
        let threshold = self.settings.threshold;
        has_others && self.turns.awake().count() > run
            || threads().any(|thread| thread.lacks_core(stand, threshold))
    }

    fn is_multi_thread(&self) -> bool {
        self.runtime.runtime_flavor() == RuntimeFlavor::MultiThread
    }

    /// A thread that has run a probe was a worker of the runtime then. `block_in_place` makes
    /// it one of the blocking pool, and another thread the worker. So of all these threads,
    /// only those that ran the latest probes count, as many as the runtime has workers.
    fn oldest_probe_of_a_worker(&self) -> Option<u64> {
        self.latest_probes().last().copied()
    }

    fn latest_probes(&self) -> Vec<u64> {
        let io = Some(self.runtime.id());
        let threads = self.threads.values();
        let own = threads.filter(|thread| thread.record.runtime() == io);
        let mut probes: Vec<u64> = own.filter_map(|own| own.record.last_probe()).collect();
        probes.sort_unstable_by(|one, other| other.cmp(one));
        probes.truncate(self.runtime.metrics().num_workers());
        probes
    }

    fn report(&mut self, stall: &Stall) {
        self.shared.count(stall);
        for hook in &self.settings.on_stall {
            call(|| hook(stall));
        }
        let culprit = stall.culprit.clone();
        let culprit = culprit.unwrap_or_else(|| stall.cause.to_string());
        if let Some(suppressed) = self.limiter.allow(culprit, Instant::now()) {
            call(|| log::warn_of_stall(stall, suppressed));
        }
    }
}

/// Calls what is the user's, a hook or the subscriber, which must not end the watch. The process's
/// panic hook has said what panicked.
fn call(f: impl FnOnce()) {
    // The payload's destructor may panic, too: leak it.
    let _ = catch_unwind(AssertUnwindSafe(f)).map_err(mem::forget);
}
