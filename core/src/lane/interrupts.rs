//! Interrupts the cores that compute, where the kernel lets threads that wake up wait for a tick.
//!
//! `os/preemption.rs` says which kernels do, and why an interrupt helps. There, and only while the
//! lane computes, the control thread calls `membarrier` once in [`Interrupts::period`].
//!
//! - **A look** of the control thread compares with the look before. If the lane was busy then and
//!   is now, it interrupts the cores, unless the process has computed for less than half of the last
//!   [`WINDOW`]: then jobs only wait, and it looks less and less often. After two looks at an idle
//!   lane it looks no more.
//! - **A push** begins that anew, and so does a Tokio worker of the lane that unparks: what
//!   libraries spawn there is in no queue of the lane. The control thread dozes in between
//!   (`doze.rs`), so no push and no unpark is lost. While the kernel is unknown, only one after
//!   which no worker is idle wakes the control thread. A look at a lane that has computed for a
//!   window then has the kernel measured.
//!
//! On a kernel that preempts at once, a push reads one byte that has its last value. A Tokio worker
//! that parks or unparks also changes a count that the workers share.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::Lane;
use super::control::Message;
use super::doze::Doze;
use crate::os::cpu_clock;
use crate::os::preemption::{self, Preemption};
use crate::sync::{
    AtomicU8, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};

/// From one look to the next, if there is nothing to interrupt: at first, and at last.
const SOON: Duration = Duration::from_millis(5);
const LATER: Duration = Duration::from_millis(100);
/// The kernel counts the CPU time of other threads at their ticks: of less than that it says little.
const WINDOW: Duration = Duration::from_millis(10);
/// From one look to the next, with interrupts in between.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

const OFF: u8 = 0;
const KERNEL_UNKNOWN: u8 = 1;
const KERNEL_IS_LAZY: u8 = 2;

pub(super) struct Interrupts {
    period: Duration,
    mode: AtomicU8,
    doze: Doze,
    sent: AtomicUsize,
}

/// What a look has found.
#[derive(Clone, Copy)]
struct Seen {
    is_busy: bool,
    /// Whether the process computed in the last [`WINDOW`]. In the first one, it is to be.
    computes: bool,
    /// The begin of this window, and the CPU time of the process then.
    at: Instant,
    cpu: Duration,
    /// To the next look, if there is nothing to interrupt.
    pause: Duration,
}

impl Interrupts {
    pub(super) fn new(period: Duration) -> Self {
        preemption::look_at_release();
        let doze = Doze::new();
        doze.begin(|| true);
        Self {
            mode: AtomicU8::new(match period.is_zero() {
                true => OFF,
                false => mode(),
            }),
            period,
            doze,
            sent: AtomicUsize::new(0),
        }
    }

    /// How often cores were interrupted.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Relaxed) as u64
    }

    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.mode.load(Relaxed) != OFF
    }

    /// Call after a push, or where a worker has unparked, and a fence.
    pub(super) fn note_work(&self, lane: &Arc<Lane>, is_saturated: impl FnOnce() -> bool) {
        match self.mode.load(Relaxed) {
            OFF => {}
            _ if !self.doze.lasts() => {}
            KERNEL_UNKNOWN if preemption::known().is_none() && !is_saturated() => {}
            _ => self.begin(lane),
        }
    }

    fn begin(&self, lane: &Arc<Lane>) {
        if self.doze.end() {
            look_later(lane.clone(), None, self.period);
        }
    }

    /// On the control thread.
    fn look(&self, lane: Arc<Lane>, before: Option<Seen>) {
        let mode = mode();
        self.mode.store(mode, SeqCst);
        if mode == OFF {
            return;
        }
        let is_idle = || !lane.is_busy();
        let now = Seen::now(!is_idle());
        let Some(before) = before else {
            return look_later(lane, Some(now), self.period);
        };
        let (now, is_new) = now.after(before);
        let pause = match (before.is_busy, now.is_busy) {
            (true, true) if now.computes && mode == KERNEL_IS_LAZY => self.interrupt(&lane),
            (true, true) if now.computes && !is_new => Some(SOON),
            (true, true) if now.computes => preemption::measure_once().then_some(SOON),
            (false, true) => Some(self.period),
            (false, false) if self.doze.begin(is_idle) => return,
            _ => Some(now.pause),
        };
        match pause {
            Some(pause) => look_later(lane, Some(now), pause),
            // A sandbox refuses it, or there is one core.
            None => self.mode.store(OFF, SeqCst),
        }
    }

    /// Not once for each look: a look costs as much. Other messages wait meanwhile. Returns when to
    /// go on. `None`: it is refused.
    fn interrupt(&self, lane: &Lane) -> Option<Duration> {
        let mut next = Instant::now();
        let end = next + BETWEEN_LOOKS;
        loop {
            if !preemption::interrupt_cores() {
                return None;
            }
            self.sent.fetch_add(1, Relaxed);
            let now = Instant::now();
            next += self.period;
            if next < now {
                // Late: no two in a row.
                next = now + self.period;
            }
            let pause = next - now;
            if next >= end || lane.is_closed() {
                return Some(pause);
            }
            thread::sleep(pause);
        }
    }
}

impl Seen {
    fn now(is_busy: bool) -> Self {
        Self {
            is_busy,
            computes: true,
            at: Instant::now(),
            cpu: cpu_clock::of_process().unwrap_or_default(),
            pause: SOON,
        }
    }

    /// What this look says after the one before, and whether a window has ended.
    fn after(self, before: Self) -> (Self, bool) {
        if !before.is_busy && self.is_busy {
            return (self, false);
        }
        let elapsed = self.at - before.at;
        let is_new = elapsed >= WINDOW;
        let computes = match is_new {
            true => self.cpu.saturating_sub(before.cpu) >= elapsed / 2,
            false => before.computes,
        };
        let (at, cpu) = match is_new {
            true => (self.at, self.cpu),
            false => (before.at, before.cpu),
        };
        let pause = match computes && self.is_busy {
            true => SOON,
            false => (2 * before.pause).min(LATER),
        };
        let now = Self {
            computes,
            at,
            cpu,
            pause,
            ..self
        };
        (now, is_new)
    }
}

fn mode() -> u8 {
    match preemption::known() {
        None => KERNEL_UNKNOWN,
        Some(Preemption::Lazy) => KERNEL_IS_LAZY,
        Some(_) => OFF,
    }
}

fn look_later(lane: Arc<Lane>, before: Option<Seen>, pause: Duration) {
    let at = Instant::now() + pause;
    let looked = lane.clone();
    let look = move |_| looked.interrupts.look(looked.clone(), before);
    // An error: the lane has ended.
    let _ = lane.send_control(Message::Call(Some(at), Box::new(look)));
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::sync::{Arc, mpsc};
    use std::thread;

    use super::*;
    use crate::{Backend, CpuRuntime};

    /// What computes until its caller ends it.
    struct Computes(Arc<AtomicBool>, mpsc::Receiver<()>);

    impl Computes {
        fn new(start: impl FnOnce(Box<dyn FnOnce() + Send>)) -> Self {
            let end = Arc::new(AtomicBool::new(false));
            let (is_over, (says, said)) = (end.clone(), mpsc::channel());
            start(Box::new(move || {
                says.send(()).unwrap();
                while !is_over.load(Relaxed) {}
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
    #[cfg(target_os = "linux")]
    fn on_a_lazy_kernel_a_lane_that_computes_interrupts_its_cores_and_no_other() {
        preemption::pretend(Preemption::Lazy);
        let io = tokio::runtime::Runtime::new().unwrap();
        let build = |backend, period| {
            let settings = CpuRuntime::builder().io_handle(io.handle().clone());
            let settings = settings.backend(backend);
            let settings = settings.worker_threads(2).interrupt_cores_every(period);
            settings.build().unwrap()
        };
        let every = Duration::from_micros(250);
        let off = build(Backend::Rayon, Duration::ZERO);
        interrupts_while(&build(Backend::Rayon, every), &off, Computes::on);
        interrupts_while(&build(Backend::Runtime, every), &off, Computes::on);
        interrupts_while(&build(Backend::Runtime, every), &off, Computes::beside_jobs);
        assert_eq!(off.handle().metrics().core_interrupts, 0);
    }

    #[cfg(target_os = "linux")]
    fn interrupts_while(cpu: &CpuRuntime, off: &CpuRuntime, start: fn(&CpuRuntime) -> Computes) {
        let lane = cpu.handle().level().lane().clone();
        let sent = || cpu.handle().metrics().core_interrupts;
        // That waits, and does not compute.
        let _suspended = cpu.spawn(std::future::pending::<()>());
        for _ in 0..3 {
            let before = sent();
            let (job, other) = (start(cpu), Computes::on(off));
            wait_until(|| sent() > before + 20);
            job.end();
            // Without that it looks no more, though the process computes. (A worker of Tokio's
            // that was woken for the job may unpark late, and begin it once more.)
            wait_until(|| {
                wait_until(|| lane.interrupts.doze.lasts());
                let after = sent();
                let began = cpu_clock::of_process().unwrap();
                let elapsed = || cpu_clock::of_process().unwrap() - began;
                wait_until(|| elapsed() > 20 * lane.interrupts.period);
                sent() == after
            });
            other.end();
        }
        // It keeps no lane from ending.
        let (before, job) = (sent(), start(cpu));
        wait_until(|| sent() > before);
        let over = cpu.shutdown();
        job.end();
        assert!(over.wait().is_empty());
    }
}
