//! Finds out whether the kernel preempts lazily.
//!
//! The release does not tell the mode, and where the mode can be read a service may not. So the
//! process measures it, once, when it computes: a thread on one core wakes a thread
//! on another one, which a niced thread keeps busy. Every second wake-up is followed by
//! `membarrier`. The kernel preempts at once if few of the others are late. It is lazy if many are,
//! and few of those that an interrupt follows. If these are late too, other processes have the
//! core, and the process tries again after a second, and after two.
//!
//! Cores that share no cache interrupt each other for a wake-up in any mode. So the first core is
//! measured with the two that follow: the numbers of the cores of one socket may be odd or even.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{hint, thread};

use rustix::thread::{CpuSet, MembarrierCommand, membarrier, sched_getaffinity, sched_setaffinity};

use super::{FOUND, Preemption, found};
use crate::log;
use crate::platform;

/// The first release with lazy preemption.
const FIRST_LAZY: (u32, u32) = (6, 13);
/// Later is not at once. A wake-up takes some 10 µs.
const LATE: Duration = Duration::from_micros(300);
/// Wake-ups without an interrupt, and as many with one.
const PAIRS: usize = 40;
/// At least this many of them are late on each lazy kernel that was measured.
const SOME: usize = 5;
/// Fewer may be late by chance.
const MANY: usize = 10;
/// Of the wake-ups on one core.
const LONGEST: Duration = Duration::from_secs(1);
/// How often it tries on a machine that is busy otherwise.
const ATTEMPTS: u64 = 3;

/// False if there is nothing to interrupt: on an older kernel, which preempts at once, where
/// that was found, and if this thread may use one core.
pub(super) fn may_be_lazy() -> bool {
    let kernel = rustix::system::uname();
    let release = kernel.release().to_str().unwrap_or_default();
    let parts = release.split(['.', '-', '+']);
    let mut numbers = parts.map_while(|part| part.parse().ok());
    let is_older = (numbers.next().zip(numbers.next())).is_some_and(|it| it < FIRST_LAZY);
    // Realtime kernels had that mode before.
    if is_older && !kernel.version().to_string_lossy().contains("PREEMPT_RT") {
        set(Preemption::AtOnce);
    }
    matches!(found(), None | Some(Preemption::Lazy))
        && sched_getaffinity(None).is_ok_and(|cores| cores.count() > 1)
}

/// Unless something else was found, or assumed, meanwhile.
fn set(it: Preemption) {
    let _ = FOUND.compare_exchange(0, it as u8 + 1, Relaxed, Relaxed);
}

/// Finds it out, by a thread of its own, which is bound to a core in the end.
pub(super) fn measure() {
    let measures = || set(compare_wakeups().unwrap_or(Preemption::Unknown));
    let _ = new_thread().spawn(measures).map(thread::JoinHandle::join);
    // If there was no thread.
    set(Preemption::Unknown);
    if found() == Some(Preemption::Lazy) {
        log::warn(
            "this kernel preempts lazily: a thread that is woken from another core waits for a \
             tick (1 to 4 ms) while all cores compute. A thread of this process \
             interrupts its cores meanwhile. To have it at once and for nothing, boot with \
             preempt=full",
        );
    }
}

fn new_thread() -> thread::Builder {
    thread::Builder::new().name("giveway-wakeups".to_owned())
}

/// Interrupts each core that runs a thread of this process. False if that is not possible.
pub(super) fn interrupt_cores() -> bool {
    let call = || membarrier(MembarrierCommand::PrivateExpedited).is_ok();
    call() || membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok() && call()
}

fn compare_wakeups() -> Option<Preemption> {
    // The first one takes milliseconds. Where it is refused, there is nothing to compare with.
    if !interrupt_cores() {
        return None;
    }
    let mask = sched_getaffinity(None).ok()?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| mask.is_set(*core));
    bind_to(cores.next()?)?;
    let others: Vec<_> = cores.take(2).collect();
    // The mask may have changed.
    others.first()?;
    for attempt in 0..ATTEMPTS {
        thread::sleep(Duration::from_secs(attempt));
        let found: Vec<_> = others.iter().map(|core| wake_threads_on(*core)).collect();
        if found.contains(&Some(Preemption::Lazy)) {
            return Some(Preemption::Lazy);
        }
        if !found.contains(&None) {
            return Some(Preemption::AtOnce);
        }
    }
    None
}

fn bind_to(core: usize) -> Option<()> {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).ok()
}

/// Whether threads on that core wake late, unless the waker interrupts it. `None` if others have
/// the core, or it is not to be had.
fn wake_threads_on(core: usize) -> Option<Preemption> {
    let is_over = &AtomicBool::new(false);
    let began = Instant::now();
    let (wake, woken) = mpsc::channel::<Instant>();
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        let computes = move || {
            // As a thread that gives way.
            let slice = Duration::from_millis(6);
            let _ = (
                bind_to(core),
                platform::set_slice(slice),
                platform::set_nice(19),
            );
            // Without a pause instruction: a virtual machine may stop at those. And with a limit:
            // under valgrind a thread that computes keeps all others from running.
            while !is_over.load(Relaxed) && began.elapsed() < LONGEST {
                (0..1 << 16).for_each(|n| _ = hint::black_box(n));
            }
        };
        let wakes_up = move || {
            let is_bound = bind_to(core);
            for began in woken {
                let _ = tell.send(is_bound.map(|()| began.elapsed()));
            }
        };
        // It owns `wake`: its return ends the thread that is woken.
        let count_late = move || {
            new_thread().spawn_scoped(scope, computes).ok()?;
            new_thread().spawn_scoped(scope, wakes_up).ok()?;
            let mut late = [0; 2];
            for n in 0..2 * PAIRS {
                // In no step with the tick.
                thread::sleep(Duration::from_micros(1_000 + n as u64 / 2 * 37));
                wake.send(Instant::now()).ok()?;
                // In an order without a period: others may have the core in turns.
                let is_interrupted = n.count_ones() % 2 == 1;
                let _ = is_interrupted && interrupt_cores();
                let waited = told.recv_timeout(LONGEST).ok()??;
                late[usize::from(is_interrupted)] += usize::from(waited > LATE);
            }
            Some(late)
        };
        let late = count_late();
        is_over.store(true, Relaxed);
        match late? {
            _ if began.elapsed() >= LONGEST => None,
            [plain, _] if plain < SOME => Some(Preemption::AtOnce),
            [plain, interrupted] if plain >= MANY && 4 * interrupted <= plain => {
                Some(Preemption::Lazy)
            }
            _ => None,
        }
    })
}
