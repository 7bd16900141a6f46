//! The thread of the process that interrupts its cores while it computes, where threads that wake
//! up wait for a tick.
//!
//! It calls `membarrier` once in 0.3 ms while the process computes. It asks the CPU clock of the
//! process, and knows no lane.
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

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use std::{io, process};

use super::{FOUND, Preemption, SENT, measure};
use crate::doze::Doze;
use crate::os::{platform, starter};
use crate::sync::AtomicBool;

/// With the slack of the kernel's timers, 0.05 ms, it is 0.3 ms.
const PAUSE: Duration = Duration::from_micros(250);
const INTERRUPTS: u32 = 33;
/// The kernel counts the CPU time of other threads at their ticks: of less than that it says little.
const FIRST_WINDOW: Duration = Duration::from_millis(10);
const LAST_WINDOW: Duration = Duration::from_millis(80);

static DOZE: Doze = Doze(AtomicBool::new(false));
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
    let started = starter::spawn("twolane-preempt", || {
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
        thread().iter().for_each(|(_, thread)| thread.unpark());
    }
}

/// Returns when there is nothing to interrupt, or no way to.
fn watch() {
    let (mut window, mut computes) = (FIRST_WINDOW, false);
    loop {
        match FOUND.load() {
            None if computes => measure::measure(),
            None | Some(Preemption::Lazy) => {}
            Some(_) => return,
        }
        let interrupts = computes && FOUND.load() == Some(Preemption::Lazy);
        computes = computes_while(|| match interrupts {
            true => (0..INTERRUPTS).for_each(|_| interrupt()),
            false => thread::sleep(window),
        });
        window = if computes { FIRST_WINDOW } else { 2 * window };
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
    let cpu = || platform::cpu_of_process().unwrap_or_default();
    let (began, before) = (Instant::now(), cpu());
    f();
    cpu().saturating_sub(before) >= began.elapsed() / 2
}

fn interrupt() {
    match measure::interrupt_cores() {
        true => _ = SENT.fetch_add(1, Relaxed),
        // The thread ends.
        false => FOUND.store(Some(Preemption::Unknown)),
    }
    thread::sleep(PAUSE);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, mpsc};

    use super::super::{core_interrupts, pretend};
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
            let lane = cpu.handle().tokio_handle().unwrap();
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
        pretend(Some(Preemption::Lazy));
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
