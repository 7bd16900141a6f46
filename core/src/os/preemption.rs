//! Whether the kernel gives a thread that wakes up a core at once, though all cores compute.
//!
//! Since 6.13 Linux has the preemption mode *lazy*. There a wake-up from another core sends no
//! interrupt to a core that computes in user mode: the woken thread waits for that core's next
//! tick, up to 4 ms, whatever the nice values. Any interrupt ends the wait, and so does
//! `membarrier`, which interrupts each core that runs a thread of this process.
//!
//! The release does not tell the mode, and where the mode can be read a service may not. So the
//! process has it measured, once, when it has a lane and computes: a thread on one core wakes a
//! thread on another one, which a niced thread keeps busy. If wake-ups are late, every second one of
//! more is followed by `membarrier`. The kernel is lazy if those are not late. If they are late too,
//! other processes have the core, and it tries again after a second.
//!
//! Cores that share no cache interrupt each other for a wake-up in any mode. So the first core is
//! measured with the two that follow: the numbers of the cores of one socket may be odd or even.

use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

/// How soon a thread that wakes up gets a core that another thread computes on.
///
/// [`preemption`] returns it.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use twolane::kernel::{Preemption, preemption};
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// // The process has not computed yet, or the kernel is older than 6.13.
/// assert_ne!(preemption(), Preemption::Lazy);
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preemption {
    /// It has not been measured: the process has not used half a core yet, or has no lane. Or it
    /// could not be: the process may use one core, others have the cores, a sandbox refuses `membarrier` or
    /// the nice value, or the platform is not Linux.
    Unknown,
    /// At once.
    AtOnce,
    /// At the next tick of that core, if a thread on another core woke it: after up to 4 ms.
    Lazy,
}

const NOT_MEASURED: u8 = 0;
#[cfg(target_os = "linux")]
const MEASURING: u8 = 1;
const UNKNOWN: u8 = 2;
const AT_ONCE: u8 = 3;
const LAZY: u8 = 4;

static FOUND: AtomicU8 = AtomicU8::new(NOT_MEASURED);

/// What is known so far. `None`: nothing yet, and that may change.
pub(crate) fn known() -> Option<Preemption> {
    match FOUND.load(SeqCst) {
        UNKNOWN => Some(Preemption::Unknown),
        AT_ONCE => Some(Preemption::AtOnce),
        LAZY => Some(Preemption::Lazy),
        _ => None,
    }
}

/// Returns how soon a thread that wakes up gets a core that another thread computes on.
///
/// Linux before 6.13 and other modes than *lazy* preempt at once. Else the process has it measured,
/// once, when it has a lane and uses half a core or more for 10 ms: by some threads, which take 50
/// to 700 ms. If the kernel is lazy, the log has a warning, and a thread of the process,
/// `twolane-preempt`, interrupts its cores while the process computes:
/// `twolane::guide::kernels`.
///
/// # Examples
///
/// ```
/// use twolane::kernel::{Preemption, preemption};
/// if preemption() == Preemption::Lazy {
///     println!("boot with preempt=full");
/// }
/// ```
pub fn preemption() -> Preemption {
    known().unwrap_or(Preemption::Unknown)
}

/// Takes `found` for what was found; `None`: nothing yet. For tests, and for benches that compare
/// lanes with and without interrupts: no part of the interface.
pub fn pretend(found: Option<Preemption>) {
    let found = match found {
        None => NOT_MEASURED,
        Some(Preemption::Unknown) => UNKNOWN,
        Some(Preemption::AtOnce) => AT_ONCE,
        Some(Preemption::Lazy) => LAZY,
    };
    FOUND.store(found, SeqCst);
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) use elsewhere::*;
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) use linux::*;

#[cfg(all(target_os = "linux", not(miri)))]
mod linux {
    use std::hint;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::mpsc;
    use std::thread;
    use std::time::{Duration, Instant};

    use rustix::thread::{
        CpuSet, MembarrierCommand, membarrier, sched_getaffinity, sched_setaffinity,
    };

    use super::*;
    use crate::guard::on_drop;
    use crate::os::nice::{self, Class, MAX_NICE, ThreadNiceness};
    use crate::os::starter;
    use crate::panics;
    use crate::trace;

    /// The first release with lazy preemption.
    const FIRST_LAZY: (u32, u32) = (6, 13);
    /// Later is not at once. A wake-up takes some 10 µs.
    const LATE: Duration = Duration::from_micros(300);
    const WAKEUPS: u32 = 30;
    /// So many of them are late on each lazy kernel that was measured.
    const SOME: usize = 4;
    /// Of the pairs that decide, for fewer may be late by chance.
    const PAIRS: u32 = 40;
    const MANY: usize = 10;
    /// As a lane's.
    const COMPUTES: ThreadNiceness = ThreadNiceness {
        nice: MAX_NICE as i32,
        class: Class::Slice(Duration::from_millis(6)),
    };
    /// Of the wake-ups on one core.
    const LONGEST: Duration = Duration::from_secs(1);
    /// How often it tries on a machine that is busy otherwise.
    const ATTEMPTS: usize = 3;

    enum Outcome {
        Found(u8),
        /// Threads wake late, and an interrupt does not help: others have the core.
        Inconclusive,
    }

    /// False if there is nothing to interrupt: on an older kernel, which preempts at once, where
    /// that was found, and if this thread may use one core.
    pub(crate) fn may_be_lazy() -> bool {
        let kernel = rustix::system::uname();
        let release = kernel.release().to_str().unwrap_or_default();
        let mut numbers = release.split(['.', '-', '+']);
        let mut number = || numbers.next()?.parse::<u32>().ok();
        let is_older = number().zip(number()).is_some_and(|it| it < FIRST_LAZY);
        // Realtime kernels had that mode before.
        let is_realtime = kernel.version().to_string_lossy().contains("PREEMPT_RT");
        if is_older && !is_realtime {
            let _ = FOUND.compare_exchange(NOT_MEASURED, AT_ONCE, SeqCst, SeqCst);
        }
        matches!(known(), None | Some(Preemption::Lazy))
            && cores().is_some_and(|cores| cores.len() > 1)
    }

    /// Has a thread of its own measure, once per process.
    pub(crate) fn measure_once() {
        let begun = FOUND.compare_exchange(NOT_MEASURED, MEASURING, SeqCst, SeqCst);
        if begun.is_err() {
            return;
        }
        let measure = || {
            // On a thread of its own: it is bound to a core, and the log below calls user code.
            let bound = thread::Builder::new().name("twolane-wakeups".to_owned());
            let found = bound
                .spawn(measure)
                .ok()
                .and_then(|bound| bound.join().ok()?);
            let _ = FOUND.compare_exchange(MEASURING, found.unwrap_or(UNKNOWN), SeqCst, SeqCst);
            if found == Some(LAZY) {
                panics::run_hook("the log", || trace::warn(trace::LAZY_PREEMPTION));
            }
        };
        if starter::spawn("twolane-wakeups".to_owned(), measure).is_err() {
            FOUND.store(UNKNOWN, SeqCst);
        }
    }

    /// Interrupts each core that runs a thread of this process. False if that is not possible.
    pub(crate) fn interrupt_cores() -> bool {
        let call = || membarrier(MembarrierCommand::PrivateExpedited).is_ok();
        call() || membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok() && call()
    }

    /// Those that this thread may use.
    fn cores() -> Option<Vec<usize>> {
        let mask = sched_getaffinity(None).ok()?;
        let cores = (0..CpuSet::MAX_CPU).filter(|core| mask.is_set(*core));
        Some(cores.collect())
    }

    fn measure() -> Option<u8> {
        // The first one takes milliseconds. Where it is refused, there is nothing to compare with.
        if !interrupt_cores() {
            return None;
        }
        let cores = cores()?;
        let (here, others) = cores.split_first()?;
        // The mask may have changed.
        others.first()?;
        pin(*here)?;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                thread::sleep(Duration::from_secs(1));
            }
            let mut is_at_once = true;
            for there in others.iter().take(2) {
                match wake_threads_on(*there)? {
                    Outcome::Found(LAZY) => return Some(LAZY),
                    Outcome::Found(_) => {}
                    Outcome::Inconclusive => is_at_once = false,
                }
            }
            if is_at_once {
                return Some(AT_ONCE);
            }
        }
        None
    }

    fn pin(core: usize) -> Option<()> {
        let mut only = CpuSet::new();
        only.set(core);
        sched_setaffinity(None, &only).ok()
    }

    /// Whether threads on that core wake late, unless the waker interrupts it.
    fn wake_threads_on(there: usize) -> Option<Outcome> {
        let is_over = &AtomicBool::new(false);
        let began = Instant::now();
        let (wake, woken) = mpsc::channel::<Instant>();
        let (tell, told) = mpsc::channel();
        // It owns `wake`: an early return must end the thread that is woken.
        thread::scope(move |scope| {
            let _end = on_drop(|| is_over.store(true, Relaxed));
            let start = || thread::Builder::new().name("twolane-wakeups".to_owned());
            let computes = move || {
                let _ = (pin(there), nice::apply(COMPUTES));
                // Without a pause instruction: a virtual machine may stop at those. And with a limit:
                // under valgrind a thread that computes keeps all others from running.
                while !is_over.load(Relaxed) && began.elapsed() < LONGEST {
                    for n in 0..1 << 18 {
                        hint::black_box(n);
                        if is_over.load(Relaxed) {
                            break;
                        }
                    }
                }
            };
            start().spawn_scoped(scope, computes).ok()?;
            let wakes_up = move || {
                let is_pinned = pin(there);
                for began in woken {
                    let _ = tell.send(is_pinned.map(|()| began.elapsed()));
                }
            };
            start().spawn_scoped(scope, wakes_up).ok()?;
            let is_late = |n: u32, interrupt: bool| {
                // In no step with the tick.
                thread::sleep(Duration::from_micros(1_000 + u64::from(n) * 37));
                wake.send(Instant::now()).ok()?;
                if interrupt {
                    interrupt_cores();
                }
                // An error: that core is not to be had at all.
                Some(told.recv_timeout(Duration::from_secs(1)).ok()?? > LATE)
            };
            let mut late = 0;
            for n in 0..WAKEUPS {
                late += usize::from(is_late(n, false)?);
            }
            if late < SOME && began.elapsed() < LONGEST {
                return Some(Outcome::Found(AT_ONCE));
            }
            // In alternation: others may have the core for a while.
            let (mut late, mut late_though_interrupted) = (0, 0);
            for n in 0..PAIRS {
                late += usize::from(is_late(n, false)?);
                late_though_interrupted += usize::from(is_late(n, true)?);
            }
            if began.elapsed() >= LONGEST {
                return None;
            }
            Some(match late >= MANY && 4 * late_though_interrupted <= late {
                true => Outcome::Found(LAZY),
                false => Outcome::Inconclusive,
            })
        })
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod elsewhere {
    use super::*;

    pub(crate) fn may_be_lazy() -> bool {
        FOUND.store(UNKNOWN, SeqCst);
        false
    }

    pub(crate) fn measure_once() {}

    pub(crate) fn interrupt_cores() -> bool {
        false
    }
}
