//! The thread of the process that interrupts its cores while it computes, where threads that wake
//! up wait for a tick.
//!
//! It calls `membarrier` once in 0.3 ms while the process computes. It asks the CPU clock of the
//! process, so it knows nothing of pools, and covers whatever computes.
//!
//! - **Awake**, the thread compares the CPU time of the process in a window with the window's
//!   length. At half a core or more it interrupts the cores during the next window, or has an
//!   unknown kernel measured. Below that the next window is twice as long, up to 100 ms.
//! - **At rest**, after 70 ms, [`resume`] ends a window: a pool calls it where it
//!   wakes one of its threads for work. It writes once per rest, and no call has to: without it,
//!   what computes waits for the next look. So it needs no ordering.
//! - **While nothing is known of the kernel**, the windows grow to 5 s: one that preempts at once
//!   should pay for few wake-ups before it is measured.
//! - The thread **ends** if the kernel preempts at once, if that cannot be found out, and if a
//!   sandbox refuses `membarrier`. It does not start on an older kernel, or with one core.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use std::{io, process};

use super::{Preemption, SENT, found, measure, set_found};
use crate::platform;
use crate::starter;

/// With the slack of the kernel's timers, 0.05 ms, it is 0.3 ms.
const PAUSE: Duration = Duration::from_micros(250);
const INTERRUPTS: u32 = 33;
/// The kernel counts the CPU time of other threads at their ticks: of less than that it says
/// little.
const FIRST_WINDOW: Duration = Duration::from_millis(10);
/// From this window on it is at rest.
const REST: Duration = Duration::from_millis(80);
const LAST_WINDOW: Duration = Duration::from_millis(100);
/// While nothing is known of the kernel.
const LAST_OF_UNKNOWN: Duration = Duration::from_secs(5);

/// Written once for each rest.
static RESTS: AtomicBool = AtomicBool::new(false);
/// With the process that it belongs to: a forked child starts its own.
static THREAD: Mutex<Option<(u32, Thread)>> = Mutex::new(None);

/// Starts the thread, unless this process has it or does not need it.
pub(crate) fn start() -> io::Result<()> {
    let mut thread = thread();
    let process = process::id();
    let has_one = matches!(&*thread, Some((owner, _)) if *owner == process);
    if has_one || !measure::may_be_lazy() {
        return Ok(());
    }
    let started = starter::spawn("giveway-preempt", || {
        watch();
        *self::thread() = None;
    })?;
    *thread = Some((process, started));
    Ok(())
}

fn thread() -> MutexGuard<'static, Option<(u32, Thread)>> {
    THREAD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The process is about to compute.
#[inline]
pub(crate) fn resume() {
    if RESTS.load(Relaxed) {
        wake();
    }
}

/// Apart, so that a caller inlines no more than a look at one byte.
#[cold]
#[inline(never)]
fn wake() {
    if RESTS.swap(false, Relaxed) {
        thread().iter().for_each(|(_, thread)| thread.unpark());
    }
}

/// Returns when there is nothing to interrupt, or no way to.
fn watch() {
    let (mut window, mut computes) = (FIRST_WINDOW, false);
    loop {
        match found() {
            None if computes => measure::measure(),
            None | Some(Preemption::Lazy) => {}
            Some(_) => return,
        }
        let is_lazy = found() == Some(Preemption::Lazy);
        let (began, before) = (Instant::now(), cpu());
        match window {
            _ if computes && is_lazy => (0..INTERRUPTS).for_each(|_| interrupt()),
            _ if window < REST => thread::sleep(window),
            _ => {
                RESTS.store(true, Relaxed);
                thread::park_timeout(window);
            }
        }
        let (lasted, computed) = (began.elapsed(), cpu().saturating_sub(before));
        // A window that `resume` has ended may be too short to tell.
        computes = lasted >= FIRST_WINDOW && computed >= lasted / 2;
        // A rest that was ended clears it.
        let goes_on = window < REST || RESTS.swap(false, Relaxed);
        let longest = if is_lazy {
            LAST_WINDOW
        } else {
            LAST_OF_UNKNOWN
        };
        window = match computes || !goes_on {
            true => FIRST_WINDOW,
            false => (2 * window).min(longest),
        };
    }
}

fn cpu() -> Duration {
    platform::cpu_of_process().unwrap_or_default()
}

fn interrupt() {
    match measure::interrupt_cores() {
        true => _ = SENT.fetch_add(1, Relaxed),
        // The thread ends.
        false => set_found(Some(Preemption::Unknown)),
    }
    thread::sleep(PAUSE);
}
