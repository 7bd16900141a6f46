//! Whether the kernel gives a thread that wakes up a core at once, though all cores compute.
//!
//! Since 6.13 Linux has the preemption mode *lazy*. There a wake-up from another core sends no
//! interrupt to a core that computes in user mode: the woken thread waits for that core's next
//! tick, up to 4 ms, whatever the nice values. Any interrupt ends the wait, and so does
//! `membarrier`, which interrupts each core that runs a thread of this process.
//!
//! The release does not tell the mode, and where the mode can be read a service may not. So the
//! first lane that is saturated has it measured, once per process: a thread on one core wakes a
//! thread on another one, which a niced thread keeps busy. If wake-ups are late, as many more are
//! followed by `membarrier`. The kernel is lazy if those are not late.
//!
//! Cores that share no cache interrupt each other for a wake-up in any mode. So the first core is
//! measured with the two that follow: the numbers of the cores of one socket may be odd or even.

use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

/// How soon a thread that wakes up gets a core that another thread computes on.
///
/// [`Handle::preemption`](crate::Handle::preemption) returns it.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use twolane::Preemption;
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// // No lane was saturated yet, or the kernel is older than 6.13.
/// assert_ne!(cpu.handle().preemption(), Preemption::Lazy);
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preemption {
    /// It has not been measured, or could not be: no lane was saturated yet, this thread may use
    /// one core, or the platform is not Linux.
    Unknown,
    /// At once.
    AtOnce,
    /// At the next tick of that core, if a thread on another core woke it: after up to 4 ms.
    Lazy,
}

const NOT_MEASURED: u8 = 0;
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

#[cfg(test)]
pub(crate) fn pretend(found: Preemption) {
    let found = match found {
        Preemption::Unknown => UNKNOWN,
        Preemption::AtOnce => AT_ONCE,
        Preemption::Lazy => LAZY,
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
    use crate::os::nice::{self, Niceness};
    use crate::os::starter;
    use crate::{panics, trace};

    /// The first release with lazy preemption.
    const FIRST_LAZY: (u32, u32) = (6, 13);
    /// Later is not at once. A wake-up takes some 10 µs.
    const LATE: Duration = Duration::from_micros(300);
    const WAKEUPS: u32 = 20;
    /// So many of them are late on each lazy kernel, and by chance on no machine for long.
    const MANY: usize = 4;

    /// Looks at the release: older kernels preempt at once.
    pub(crate) fn look_at_release() {
        let release = rustix::system::uname();
        let mut numbers = (release.release().to_str().unwrap_or_default()).split(['.', '-', '+']);
        let mut number = || numbers.next()?.parse::<u32>().ok();
        if number().zip(number()).is_some_and(|it| it < FIRST_LAZY) {
            let _ = FOUND.compare_exchange(NOT_MEASURED, AT_ONCE, SeqCst, SeqCst);
        }
    }

    /// Has a thread of its own measure, once per process. `niceness`: of a thread that computes.
    pub(crate) fn measure_once(niceness: Niceness) {
        let begun = FOUND.compare_exchange(NOT_MEASURED, MEASURING, SeqCst, SeqCst);
        if begun.is_err() {
            return;
        }
        let measure = move || {
            // Also after a panic: no thread could be started.
            let found = panics::catch(|| measure(niceness)).ok().flatten();
            FOUND.store(found.unwrap_or(UNKNOWN), SeqCst);
            if found == Some(LAZY) {
                panics::run_hook("the log", trace::warn_of_lazy_preemption);
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

    fn measure(niceness: Niceness) -> Option<u8> {
        let mask = sched_getaffinity(None).ok()?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| mask.is_set(*core));
        let here = cores.next()?;
        pin(here)?;
        let found: Vec<_> = (cores.take(2))
            .map(|there| is_late(niceness, there))
            .collect::<Option<_>>()?;
        let any_is_late = found.iter().any(|late| *late);
        (!found.is_empty()).then_some(if any_is_late { LAZY } else { AT_ONCE })
    }

    fn pin(core: usize) -> Option<()> {
        let mut only = CpuSet::new();
        only.set(core);
        sched_setaffinity(None, &only).ok()
    }

    /// Whether threads on that core wake late, unless the waker interrupts it.
    fn is_late(niceness: Niceness, there: usize) -> Option<bool> {
        let is_over = AtomicBool::new(false);
        let (wake, woken) = mpsc::channel::<Instant>();
        let (tell, told) = mpsc::channel();
        thread::scope(|scope| {
            let _end = on_drop(|| is_over.store(true, Relaxed));
            let start = || thread::Builder::new().name("twolane-wakeups".to_owned());
            let computes = || {
                let _ = (pin(there), nice::apply(niceness));
                // Without a pause instruction: a virtual machine may stop at those.
                while !is_over.load(Relaxed) {
                    hint::black_box(0);
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
            let wake_up = |n: u32, interrupt: bool| {
                // In no step with the tick.
                thread::sleep(Duration::from_micros(1_000 + u64::from(n) * 37));
                wake.send(Instant::now()).ok()?;
                if interrupt {
                    interrupt_cores();
                }
                Some(told.recv().ok()?? > LATE)
            };
            let late_of = |interrupt| {
                let late = (0..WAKEUPS).map(|n| wake_up(n, interrupt));
                let late = late.collect::<Option<Vec<_>>>();
                late.map(|late| late.into_iter().filter(|late| *late).count())
            };
            let late = late_of(false)?;
            // Or the machine is busy with something else.
            let is_lazy = late >= MANY && {
                let (again, interrupted) = (late_of(false)?, late_of(true)?);
                again >= MANY && 3 * interrupted <= late.max(again)
            };
            drop(wake);
            Some(is_lazy)
        })
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod elsewhere {
    use super::*;

    pub(crate) fn look_at_release() {
        FOUND.store(UNKNOWN, SeqCst);
    }

    pub(crate) fn measure_once(_niceness: crate::os::nice::Niceness) {}

    pub(crate) fn interrupt_cores() -> bool {
        false
    }
}
