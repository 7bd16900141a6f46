//! Threads that wake up on each core again and again, so that the kernel looks who should have the
//! core.
//!
//! A thread that wakes up gets a core from one that gives way, if the kernel finds at that moment
//! that it is due. It may be short of that by microseconds, for what it had before. Then nothing
//! asks again before the core's tick, up to 4 ms later, unless a thread with a short slice wakes up
//! on that core. So there is one for each core, which only sleeps.
//!
//! They cost CPU time, so they tick when that helps:
//!
//! - **Threads that compute come and go.** They slept before, so the kernel owes them something.
//!   A pool calls [`note`] where it wakes up one of its threads for work.
//! - **All compute without a pause**, and the kernel preempts *lazily*, as Linux 7 does by default:
//!   it leaves every wake-up from another core to the tick. Whether it does is found out by waking
//!   up a thread on another core.
//!
//! The leader, `giveway-ticker`, looks every 50 ms. If the process has used a sixteenth of its cores
//! since the last look, and one of the two is the case, it starts the others, `giveway-tick`, and
//! ends them after a second without. They are bound to the cores that the leader may use. If those
//! change it starts them anew.
//!
//! At rest nothing wakes up. The leader sets `RESTS`, looks once more, and parks until the next
//! `note`. A call that read `NOTED` before the leader cleared it is no loss: what it begins
//! falls into that last look. One that set it later than the leader cleared it is seen before the
//! leader parks. So the flags need no ordering.
//!
//! The leader does not start on a kernel without slices of one's own, nor under a quota of less than
//! half of the cores, and it ends where its slice is refused.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use std::{io, process};

use crate::platform;
use crate::quota::Quota;
use crate::starter;

/// Less than most others': with the kernel's own the same wake-ups do nothing.
const SLICE: Duration = Duration::from_micros(100);
/// The kernel counts the CPU time of other threads at their ticks: of less than that it says
/// little.
const LOOK: Duration = Duration::from_millis(50);
/// The process computes if it uses one part of so many of what its cores can do.
const PARTS: u32 = 16;
/// So many looks are a second: without a need for ticks it ends them, without computing in a rest.
const LOOKS: u32 = 20;
/// What [`tick_each`] takes.
const SHORTEST: Duration = Duration::from_micros(250);
const LONGEST: Duration = Duration::from_millis(10);
/// The first release with slices of one's own, and the first with lazy preemption.
const FIRST: [(u32, u32); 2] = [(6, 12), (6, 13)];
/// By so many votes more the kernel is lazy, or is not. Each is of so many wake-ups, a third of which
/// is late, by more than that.
const VOTES: i32 = 3;
/// After so many looks in which nothing woke up, and again after as many.
const VOTE_AFTER: u32 = 5;
const WAKEUPS: usize = 40;
const LATE: Duration = Duration::from_micros(200);
/// As the kernel's own: with a shorter one some lazy kernels are not.
const USUAL_SLICE: Duration = Duration::from_millis(3);

/// In ns. 0: never.
static PERIOD: AtomicU64 = AtomicU64::new(1_000_000);
/// Since the last look.
static NOTED: AtomicBool = AtomicBool::new(false);
static RESTS: AtomicBool = AtomicBool::new(false);
/// With the process that it belongs to: a forked child starts its own.
static LEADER: Mutex<Option<(u32, Thread)>> = Mutex::new(None);

/// Starts the leader, unless this process has it or has no use for it.
pub(crate) fn start() -> io::Result<()> {
    let (mut leader, process) = (leader(), process::id());
    let has_one = matches!(&*leader, Some((owner, _)) if *owner == process);
    // Few of the cores are busy then, and ticks on all would cost too much of the quota.
    let has_small_quota = || {
        let cores = platform::own_cores().len() as f64;
        Quota::below_cores().is_some_and(|quota| 2.0 * quota.cores < cores)
    };
    if has_one || period().is_zero() || platform::release() < FIRST[0] || has_small_quota() {
        return Ok(());
    }
    let started = starter::spawn("giveway-ticker", || {
        // The others inherit it. Where it is refused, ticks do nothing. It takes the nice value.
        if platform::set_slice(SLICE).is_ok() {
            let _ = starter::base_nice().and_then(platform::set_nice);
            Leader::default().lead();
        }
    })?;
    *leader = Some((process, started));
    Ok(())
}

/// Sets how often threads of this process wake up on each core, 0.25 to 10 ms. `None`: never.
/// Default: 1 ms.
///
/// They do so while threads compute that come and go, and on a kernel that preempts lazily while
/// any compute. The wait of a thread that wakes up for a core that another one computes on is about
/// as long, mostly. A shorter period costs more CPU time. Nothing ticks before Linux 6.12, in a
/// process that was started niced and has no privilege, in a sandbox that refuses slices or CPU
/// masks, and under a CPU quota of less than half of the cores.
///
/// It takes effect within 50 ms. With `None` before the first call of [`start`](crate::start), no
/// thread is there that could tick; a later `start` makes up for it.
///
/// # Errors
///
/// `InvalidInput` for a period out of its range. It has no effect then.
///
/// # Examples
///
/// ```
/// fn main() -> std::io::Result<()> {
///     giveway::tick_each(None)?; // this process serves nobody
///     giveway::start()?;
///     Ok(())
/// }
/// ```
pub fn tick_each(period: Option<Duration>) -> io::Result<()> {
    let is_odd = |period: &Duration| !(SHORTEST..=LONGEST).contains(period);
    if let Some(odd) = period.filter(is_odd) {
        let text = format!("tick_each({odd:?}): 0.25 to 10 ms, or None");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let nanos = period.map_or(0, |period| period.as_nanos() as u64);
    PERIOD.store(nanos, Relaxed);
    note();
    Ok(())
}

/// A thread wakes up to compute.
#[inline]
pub(crate) fn note() {
    if !NOTED.load(Relaxed) {
        note_first();
    }
}

/// Once between two looks. Apart, so that a caller inlines no more than a look at one byte.
#[cold]
#[inline(never)]
fn note_first() {
    NOTED.store(true, Relaxed);
    if RESTS.swap(false, Relaxed) {
        leader().iter().for_each(|(_, thread)| thread.unpark());
    }
}

fn leader() -> MutexGuard<'static, Option<(u32, Thread)>> {
    LEADER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn period() -> Duration {
    Duration::from_nanos(PERIOD.load(Relaxed))
}

/// What the leader has seen.
#[derive(Default)]
struct Leader {
    /// How many looks ago the process computed.
    quiet: u32,
    /// In the last look it had most of what its cores can do.
    is_full: bool,
    /// How many looks ago a thread woke up to compute.
    steady: u32,
    /// How often wake-ups were late, less how often not, up to [`VOTES`].
    late: i32,
}

impl Leader {
    fn look(&mut self) {
        let cpu = || platform::cpu_of_process().unwrap_or_default();
        NOTED.store(false, Relaxed);
        let (began, before) = (Instant::now(), cpu());
        thread::park_timeout(LOOK);
        let (computed, lasted) = (cpu().saturating_sub(before), began.elapsed());
        let cores = platform::own_cores().len() as u32;
        // A look that `note` has ended may be too short to tell.
        let tells = lasted >= LOOK / 2 && cores > 0;
        let computes = tells && PARTS * computed >= lasted * cores;
        self.quiet = if computes { 0 } else { self.quiet + 1 };
        self.is_full = tells && 4 * computed >= 3 * lasted * cores;
        let noted = NOTED.load(Relaxed);
        self.steady = if noted { 0 } else { self.steady + 1 };
    }

    fn is_to_tick(&self) -> bool {
        let helps = self.steady < LOOKS || self.late == VOTES;
        helps && self.quiet < LOOKS && !period().is_zero()
    }

    fn lead(&mut self) -> ! {
        loop {
            // Not again before it parks: that would undo a call of `note`.
            RESTS.fetch_or(self.quiet == LOOKS, Relaxed);
            if self.quiet > LOOKS {
                // The second: a call of `note` may have found `RESTS` unset and set `NOTED` after
                // the last look cleared it.
                if RESTS.load(Relaxed) && !NOTED.load(Relaxed) {
                    thread::park();
                    continue;
                }
                self.quiet = 1;
            }
            self.look();
            if self.quiet > 0 {
                continue;
            }
            RESTS.store(false, Relaxed);
            let cores = platform::own_cores();
            let is_unknown = self.late.abs() < VOTES && platform::release() >= FIRST[1];
            let is_due = self.steady > 0 && self.steady % VOTE_AFTER == 0;
            if is_unknown && is_due && self.is_full && !period().is_zero() {
                self.late += match wakes_late(&cores) {
                    Some(true) => 1,
                    Some(false) => -1,
                    None => 0,
                };
            }
            if self.is_to_tick() {
                self.tick(&cores);
            }
        }
    }

    /// Until a second has passed without a need, or other cores are to be had, or it is not to tick.
    fn tick(&mut self, cores: &[usize]) {
        let is_over = &AtomicBool::new(false);
        thread::scope(|scope| {
            for core in cores {
                let tick = move || {
                    let is_bound = platform::bind_to(*core).is_ok();
                    while is_bound && !is_over.load(Relaxed) {
                        // Not at all would be a spin, and the leader may be told otherwise soon.
                        let period = Some(period()).filter(|it| !it.is_zero());
                        thread::sleep(period.unwrap_or(LONGEST));
                    }
                };
                // Without it this core waits for the kernel's tick.
                let _ = new_thread("giveway-tick").spawn_scoped(scope, tick);
            }
            while self.is_to_tick() && platform::own_cores() == cores {
                self.look();
            }
            is_over.store(true, Relaxed);
        });
    }
}

fn new_thread(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.to_owned())
}

/// Whether a thread that one on another core wakes up waits for a core that computes; `None` if
/// there is no other, or no thread. So it does, too, if other processes have the cores: then the
/// ticks cost a little, and do nothing.
fn wakes_late(cores: &[usize]) -> Option<bool> {
    let [waker, woken, ..] = *cores else {
        return None;
    };
    let usual = move |core| platform::bind_to(core).and(platform::set_slice(USUAL_SLICE));
    let (wake, wakes) = mpsc::channel::<Instant>();
    let wakes_up = move || {
        let late = |began: &Instant| began.elapsed() > LATE;
        usual(woken).ok()?;
        Some(wakes.iter().filter(late).count())
    };
    let sends = move || {
        let wakeups = usual(waker).map_or(0, |()| WAKEUPS);
        for n in 0..wakeups {
            // In no step with the kernel's tick.
            thread::sleep(Duration::from_micros(1_000 + 37 * n as u64));
            let _ = wake.send(Instant::now());
        }
        wakeups
    };
    let woken = new_thread("giveway-probe").spawn(wakes_up).ok()?;
    let sent = new_thread("giveway-probe").spawn(sends).ok()?;
    let late = woken.join().ok()??;
    (sent.join().ok()? == WAKEUPS).then_some(3 * late >= WAKEUPS)
}
