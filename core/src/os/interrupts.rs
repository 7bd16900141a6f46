//! Interrupts the cores of a process that computes, where the kernel lets threads that wake up wait
//! for a tick.
//!
//! `preemption.rs` says which kernels do, and why an interrupt helps. On those, one thread of the
//! process calls `membarrier` once in [`PERIOD`] while the process computes. It asks the CPU clock
//! of the process, and knows no lane.
//!
//! - **Awake**, the thread compares the CPU time of the process in a window with the window's
//!   length. At half a core or more it interrupts the cores during the next window, or has an
//!   unknown kernel measured. Below that the next window is twice as long, and after the third one
//!   the thread falls asleep.
//! - **Asleep**, the thread has no timeout. [`note_work`] wakes it: where a lane has pushed a job,
//!   where a Tokio worker of a lane has unparked (what libraries spawn is in no queue), and in
//!   `install`. No push is lost ([`Doze`]): the thread notes that it sleeps, and then looks at the
//!   clock for one more window. A push after the note wakes it. A push before the note shows in that
//!   window, unless its job begins to compute later: then the thread sleeps until the next push.
//! - The thread **ends** if the kernel preempts at once, if that cannot be found out, and if a
//!   sandbox refuses `membarrier`. It does not start on an older kernel, or with one core. Without
//!   the thread, a push reads one byte that does not change.

use std::io;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::preemption::{self, Preemption};
use super::{cpu_clock, starter};
use crate::doze::Doze;
use crate::sync::AtomicBool;

const PERIOD: Duration = Duration::from_micros(300);
/// The kernel counts the CPU time of other threads at their ticks: of less than that it says little.
const FIRST_WINDOW: Duration = Duration::from_millis(10);
const LAST_WINDOW: Duration = Duration::from_millis(80);

static DOZE: Doze = Doze(AtomicBool::new(false));
static SENT: AtomicU64 = AtomicU64::new(0);
/// With the process that it belongs to: a forked child starts its own.
static THREAD: Mutex<Option<(u32, Thread)>> = Mutex::new(None);

/// Returns how often this process has interrupted its cores. 0 on a kernel that gives a woken
/// thread a core at once: see [`preemption`](crate::kernel::preemption).
///
/// # Examples
///
/// ```
/// println!("{} interrupts", twolane::kernel::core_interrupts());
/// ```
pub fn core_interrupts() -> u64 {
    SENT.load(Relaxed)
}

/// Starts the thread, unless this process has it or does not need it.
pub(crate) fn start() -> io::Result<()> {
    let mut thread = thread();
    let process = process::id();
    let has_one = matches!(&*thread, Some((owner, _)) if *owner == process);
    if has_one || !preemption::may_be_lazy() {
        return Ok(());
    }
    let started = starter::spawn_parker("twolane-preempt", || {
        watch();
        *self::thread() = None;
    })?;
    *thread = Some((process, started));
    Ok(())
}

fn thread() -> MutexGuard<'static, Option<(u32, Thread)>> {
    THREAD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Call after a push, or where a worker has unparked, and a fence.
#[inline]
pub(crate) fn note_work() {
    if DOZE.lasts() {
        wake();
    }
}

/// Apart, so that a push inlines no more than a look at one byte.
#[cold]
#[inline(never)]
fn wake() {
    if DOZE.end() {
        if let Some((_, thread)) = &*thread() {
            thread.unpark();
        }
    }
}

/// Returns when there is nothing to interrupt, or no way to.
fn watch() {
    let (mut window, mut computes) = (FIRST_WINDOW, false);
    loop {
        let is_lazy = match preemption::known() {
            None => false,
            Some(Preemption::Lazy) => true,
            Some(_) => return,
        };
        if computes && !is_lazy {
            preemption::measure_once();
        }
        let mut is_refused = false;
        computes = computes_while(|| match computes && is_lazy {
            true => is_refused = !interrupt_for(window),
            false => thread::sleep(window),
        });
        if is_refused {
            return;
        }
        window = match computes {
            true => FIRST_WINDOW,
            false => 2 * window,
        };
        if window == LAST_WINDOW {
            DOZE.begin(|| !computes_while(wait_for_push));
            while DOZE.lasts() {
                thread::park();
            }
            window = FIRST_WINDOW;
        }
    }
}

/// For [`LAST_WINDOW`] at most. The token of an earlier push does not end it.
fn wait_for_push() {
    let end = Instant::now() + LAST_WINDOW;
    while DOZE.lasts() && Instant::now() < end {
        thread::park_timeout(end.saturating_duration_since(Instant::now()));
    }
}

/// Whether the process uses half a core or more while `f` takes its time.
fn computes_while(f: impl FnOnce()) -> bool {
    let cpu = || cpu_clock::of_process().unwrap_or_default();
    let (began, before) = (Instant::now(), cpu());
    f();
    cpu().saturating_sub(before) >= began.elapsed() / 2
}

/// False if it is refused.
fn interrupt_for(window: Duration) -> bool {
    let mut next = Instant::now();
    let end = next + window;
    while next < end {
        if !preemption::interrupt_cores() {
            return false;
        }
        SENT.fetch_add(1, Relaxed);
        let now = Instant::now();
        next += PERIOD;
        if next <= now {
            // Late: no two in a row.
            next = now + PERIOD;
        }
        thread::sleep(next - now);
    }
    true
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, mpsc};

    use super::*;
    use crate::{Backend, CpuRuntime, Niceness};

    /// What computes until its caller ends it.
    struct Computes(Arc<AtomicBool>, mpsc::Receiver<()>);

    impl Computes {
        fn new(start: impl FnOnce(Box<dyn FnOnce() + Send>)) -> Self {
            let end = Arc::new(AtomicBool::new(false));
            let (is_over, (says, said)) = (end.clone(), mpsc::channel());
            start(Box::new(move || {
                says.send(()).unwrap();
                // On many threads: what else the machine computes would leave one of them less than
                // half a core.
                thread::scope(|scope| {
                    for _ in 0..16 {
                        scope.spawn(|| while !is_over.load(Relaxed) {});
                    }
                });
                says.send(()).unwrap();
            }));
            said.recv().unwrap();
            Self(end, said)
        }

        /// A job.
        fn on(cpu: &CpuRuntime) -> Self {
            Self::new(|compute| cpu.spawn_cpu(compute).detach())
        }

        /// A library's task.
        fn beside_jobs(cpu: &CpuRuntime) -> Self {
            let lane = cpu.handle().cpu_runtime().unwrap();
            Self::new(|compute| drop(lane.spawn(async { compute() })))
        }

        /// What is in rayon's queue, and not in the lane's.
        fn installed(cpu: &CpuRuntime) -> Self {
            let cpu = cpu.handle();
            Self::new(|compute| drop(thread::spawn(move || cpu.install(compute).unwrap())))
        }

        fn end(self) {
            self.0.store(true, Relaxed);
            self.1.recv().unwrap();
        }
    }

    fn wait_until(is: impl Fn() -> bool) {
        while !is() {
            thread::park_timeout(Duration::from_millis(1));
        }
    }

    /// A kernel that is not lazy takes `membarrier` as well.
    #[test]
    fn on_a_lazy_kernel_a_process_that_computes_interrupts_its_cores() {
        if thread::available_parallelism().unwrap().get() < 2 {
            return;
        }
        preemption::pretend(Some(Preemption::Lazy));
        let io = tokio::runtime::Runtime::new().unwrap();
        let lane = |backend| {
            let settings = CpuRuntime::builder().io_handle(io.handle().clone());
            // Without nice values, for the same reason.
            let settings = settings.backend(backend).worker_threads(2);
            let settings = settings.niceness(Niceness::off());
            settings.build().unwrap()
        };
        interrupts_while(lane(Backend::Rayon), Computes::on);
        interrupts_while(lane(Backend::Rayon), Computes::installed);
        interrupts_while(lane(Backend::Runtime), Computes::on);
        interrupts_while(lane(Backend::Runtime), Computes::beside_jobs);
    }

    fn interrupts_while(cpu: CpuRuntime, start: fn(&CpuRuntime) -> Computes) {
        // That waits, and does not compute.
        let _suspended = cpu.spawn(std::future::pending::<()>());
        for _ in 0..2 {
            // Other tests end, too.
            wait_until(|| DOZE.lasts());
            let before = core_interrupts();
            let computes = start(&cpu);
            wait_until(|| core_interrupts() > before + 20);
            computes.end();
        }
        // It keeps no lane from ending.
        let (before, computes) = (core_interrupts(), start(&cpu));
        wait_until(|| core_interrupts() > before);
        let over = cpu.shutdown();
        computes.end();
        assert!(over.wait().is_empty());
    }
}
