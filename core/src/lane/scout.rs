//! The scout of a level: a thread that starts at once what is short, or may be.
//!
//! Jobs that are queued wait for those before them, and a short one behind long ones waits for
//! milliseconds to seconds. The best place in the queue does not help while each thread runs a
//! long job: only the kernel can interrupt that. So beside the level's workers sleeps a *scout*,
//! a thread with the weight of `Priority::High`.
//!
//! - **A job of a site that is known to be short, or of one that is not known,** goes into the
//!   scout's queue (`metrics/call_sites/lengths.rs`). Its push wakes the scout, whose weight gets
//!   it a core at once. If the scout is awake, the push notifies the workers as well: they take
//!   from both queues, of the scout's up to [`PASSES`] jobs for each of the other. A job of
//!   a site that is known to be long is queued as without a scout. If the site becomes known while
//!   its jobs are in the scout's queue, those that take them from there put them into the other one.
//! - **A job that goes on is lowered.** A job of an unknown site, and a push that finds the scout
//!   awake, have the control thread look at the scout once in [`LOOK`], until the scout sleeps. If
//!   the control thread finds the same step twice, it marks that step (the thread then ends with
//!   it), raises the nice value of the thread to that of the level's workers (which no thread can
//!   take back), and starts the next scout. If the thread has computed in between, the site is
//!   long from then on. So many jobs of a long site cost one thread.
//! - **As many threads as the level has workers may be lowered** at a time. After that, the scout
//!   keeps its job and its weight, and its queue is left to the workers.
//!
//! **No job is left.** A push wakes the scout, or the scout finds the job before it parks
//! (`doze.rs`). If the push finds the scout awake, it notifies the workers, which look at both
//! queues before they park. A worker that takes a job of the scout's queue notifies the others of
//! what is in the level's own: it may have been put there for this worker. A thread that was lowered does not park again: it learns of it at the
//! end of its step, by the word that holds the mark.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use stallwatch::Name;

use super::Level;
use super::control::Message;
use super::doze::Doze;
use crate::metrics::call_sites::Length;
use crate::os::cpu_clock;
use crate::os::nice::{self, ThreadId};
use crate::priority::Priority;
use crate::sync::{
    AtomicBool, AtomicU32, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    Queue, fence,
};
use crate::task::Run;

const PASSES: usize = 8;
/// A step that goes on from one look to the next takes a millisecond at least.
const LOOK: Duration = Duration::from_millis(1);

pub(crate) struct Scout {
    queue: Queue<Arc<dyn Run>>,
    /// Jobs of this queue that workers have run since one of the other. A hint.
    passed: AtomicUsize,
    doze: Doze,
    /// The control thread looks at the scout, or is about to.
    is_watched: AtomicBool,
    /// Threads that were lowered and have not ended.
    lowered: AtomicUsize,
    /// Who serves. `None` before the first has started, and where none could be started.
    serves: Mutex<Option<Arc<ScoutThread>>>,
}

/// One thread that serves as the scout.
pub(crate) struct ScoutThread {
    thread: Thread,
    id: ThreadId,
    /// How often a step has begun or ended: odd inside a step. And whether the step is lowered.
    steps: AtomicU32,
    site: AtomicU32,
}

const LOWERED: u32 = 1 << 31;

impl ScoutThread {
    /// Of the calling thread.
    pub(crate) fn of_this_thread() -> Arc<Self> {
        Arc::new(Self {
            thread: thread::current(),
            id: nice::this_thread(),
            steps: AtomicU32::new(0),
            site: AtomicU32::new(0),
        })
    }

    /// That step goes on for longer than [`LONG`](crate::metrics::call_sites::LONG).
    fn note_long(&self, level: &Level, step: u32) {
        let site = self.site.load(Acquire);
        // Or it is the site of a later step.
        if self.steps.load(SeqCst) == step {
            if let Some(site) = Name::at(site) {
                level.lengths(site).is_long();
            }
        }
    }

    pub(crate) fn begin_step(&self, site: Name) {
        self.site.store(site.index(), Release);
        self.advance();
    }

    /// True if the step was lowered: then the thread is the scout no more.
    pub(crate) fn end_step(&self) -> bool {
        self.advance() & LOWERED != 0
    }

    /// Only this thread calls it. Returns the word of before.
    fn advance(&self) -> u32 {
        let next = (self.steps.load(Relaxed) + 1) & !LOWERED;
        self.steps.swap(next, SeqCst)
    }
}

impl Scout {
    pub(super) fn new() -> Self {
        Self {
            queue: Queue::new(),
            passed: AtomicUsize::new(0),
            doze: Doze::new(),
            is_watched: AtomicBool::new(false),
            lowered: AtomicUsize::new(0),
            serves: Mutex::new(None),
        }
    }

    fn serves(&self) -> MutexGuard<'_, Option<Arc<ScoutThread>>> {
        self.serves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn push(&self, job: Arc<dyn Run>) {
        self.queue.push(job);
    }

    pub(super) fn pop(&self) -> Option<Arc<dyn Run>> {
        self.queue.pop()
    }

    /// For a worker, which takes from the other queue if there is none. `is_other_empty`: of the
    /// level's own queue.
    pub(super) fn pop_in_turn(
        &self,
        is_other_empty: impl FnOnce() -> bool,
    ) -> Option<Arc<dyn Run>> {
        if self.queue.is_empty() {
            return None;
        }
        if self.passed.load(Relaxed) >= PASSES && !is_other_empty() {
            self.passed.store(0, Relaxed);
            return None;
        }
        self.queue.pop()
    }

    /// A worker is about to run a job of this queue.
    pub(super) fn has_passed(&self) {
        self.passed.store(self.passed.load(Relaxed) + 1, Relaxed);
    }

    /// Call after a push and a fence. False if the scout is awake: then the caller notifies the
    /// workers.
    pub(super) fn wake(&self, level: &Level, length: Length) -> bool {
        let woken = self.doze.end();
        if woken {
            self.unpark();
        }
        // One that is awake may have met a long job. One that a known site wakes has not.
        if !woken || length == Length::Unknown {
            self.watch(level);
        }
        woken
    }

    /// Parks the scout until a push. False if the lane has closed and nothing is queued.
    pub(crate) fn park(&self, level: &Level) -> bool {
        if self.doze.begin(|| self.queue.is_empty()) {
            while self.doze.lasts() {
                if level.lane().is_closed() {
                    return false;
                }
                thread::park();
            }
        }
        true
    }

    /// The lane has closed.
    pub(super) fn end(&self) {
        self.unpark();
    }

    fn unpark(&self) {
        // Not inside the lock: the thread may take this one's core, and another submitter would
        // wait for the lock.
        let scout = self.serves().clone();
        if let Some(scout) = scout {
            scout.thread.unpark();
        }
    }

    fn watch(&self, level: &Level) {
        if !self.is_watched.swap(true, SeqCst) {
            look_later(level.clone(), None, LOOK);
        }
    }

    /// On the control thread. `seen`: what the last look found.
    fn look(&self, level: Level, seen: Option<Seen>) {
        let Some(scout) = self.serves().clone() else {
            // It is about to start, and then watched.
            self.is_watched.store(false, SeqCst);
            return;
        };
        let now = Seen {
            step: scout.steps.load(SeqCst),
            thread: scout.id,
            cpu: cpu_clock::of_other_thread(scout.id),
        };
        if let Some(seen) = seen.filter(|seen| seen.is_same_step(&now)) {
            if seen.has_computed(&now) {
                scout.note_long(&level, now.step);
            }
            // The next scout may have met a long job, too. If there are enough of them, and it goes
            // on, there is no hurry.
            let is_lowered = self.lower(&level, &scout, now.step);
            let goes_on = scout.steps.load(SeqCst) == now.step;
            let pause = match !is_lowered && goes_on {
                true => 10 * LOOK,
                false => LOOK,
            };
            return look_later(level, Some(now), pause);
        }
        if self.doze.lasts() || level.lane().is_closed() {
            self.is_watched.store(false, SeqCst);
            // A push that found it watched may have found it awake.
            fence(SeqCst);
            if self.doze.lasts() || self.is_watched.swap(true, SeqCst) {
                return;
            }
        }
        look_later(level, Some(now), LOOK);
    }

    /// False if there are enough of them, or the step has ended.
    fn lower(&self, level: &Level, scout: &ScoutThread, step: u32) -> bool {
        let most = level.lane().settings.threads;
        let one_more = |lowered| (lowered < most).then_some(lowered + 1);
        if self.lowered.fetch_update(SeqCst, SeqCst, one_more).is_err() {
            return false;
        }
        let marked = scout
            .steps
            .compare_exchange(step, step | LOWERED, SeqCst, SeqCst);
        if marked.is_err() {
            // It has just ended.
            self.lowered.fetch_sub(1, SeqCst);
            return false;
        }
        let nice = level.lane().settings.niceness[level.priority().index()].nice;
        let _ = nice::raise(scout.id, nice);
        self.start_next(level);
        true
    }

    fn start_next(&self, level: &Level) {
        *self.serves() = None;
        // Where none can be had, the workers take the jobs of its queue.
        let _ = start(level);
        if let Some(workers) = level.workers() {
            workers.notify(level);
        }
    }

    /// A thread that was lowered has ended its step. The caller is that thread, and ends.
    pub(crate) fn lowered_has_ended(&self) {
        self.lowered.fetch_sub(1, SeqCst);
    }
}

/// What a look at the scout finds.
#[derive(Clone, Copy)]
struct Seen {
    step: u32,
    thread: ThreadId,
    cpu: Option<Duration>,
}

impl Seen {
    fn is_same_step(&self, later: &Self) -> bool {
        later.step % 2 == 1 && (self.step, self.thread) == (later.step, later.thread)
    }

    /// Whether the thread had a core for most of the time in between. A job that waits, or whose
    /// thread lost its core, may be short.
    fn has_computed(&self, later: &Self) -> bool {
        match (self.cpu, later.cpu) {
            (Some(before), Some(now)) => now.saturating_sub(before) >= LOOK * 3 / 4,
            _ => true,
        }
    }
}

fn look_later(level: Level, seen: Option<Seen>, pause: Duration) {
    let lane = level.lane().clone();
    let look = move |_| {
        if let Some(scout) = level.scout() {
            scout.look(level.clone(), seen);
        }
    };
    // An error: the lane has ended.
    let _ = lane.send_control(Message::Call(Some(Instant::now() + pause), Box::new(look)));
}

/// Starts the thread that serves as the scout of this level, if it is to have one.
pub(super) fn start(level: &Level) -> io::Result<()> {
    let (Some(scout), false) = (level.scout(), level.lane().is_closed()) else {
        return Ok(());
    };
    let thread = (level.lane().settings.start_scout)(level)?;
    *scout.serves() = Some(thread);
    // A push may have woken it before it could be found here. And it may have a job already.
    scout.unpark();
    scout.watch(level);
    Ok(())
}

/// Which priority's weight a scout has.
pub(crate) const WEIGHT: Priority = Priority::High;
