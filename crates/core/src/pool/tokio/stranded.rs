//! Finds jobs that wait beside a parked worker of a Tokio runtime.
//!
//! Tokio (1.54) lets a worker that was not searching for tasks park without a last look at the
//! queue. What is pushed while it is about to park wakes no worker, and waits for the next push, or
//! for the end of another worker's step. If that step waits for what was pushed, both wait forever.
//! (The test below hangs without [`Stranded::note_push`]. With a Tokio where it does not, this file
//! can go.)
//!
//! So a push that finds some worker busy asks the ticker to look, every 5 ms for as long as jobs are
//! queued. If a worker is parked then, the ticker spawns an empty task, which wakes it: a woken
//! worker looks at the whole queue. While no worker is busy, none is about to park without a look.
//!
//! The looks end as a thread goes to sleep (`doze.rs`), so a push beside their end begins them
//! anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use ::tokio::runtime::Handle;

use crate::doze::Doze;
use crate::lane::Level;
use crate::sync::AtomicBool;
use crate::task::ticker;

pub(super) struct Stranded {
    /// Whether the ticker does not look.
    doze: Doze,
    /// How many workers are parked, or about to.
    pub(super) parked: AtomicUsize,
    workers: usize,
}

impl Stranded {
    pub(super) fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self {
            doze: Doze(AtomicBool::new(true)),
            parked: AtomicUsize::new(0),
            workers,
        })
    }

    /// Call after a push and a fence.
    pub(super) fn note_push(self: &Arc<Self>, level: &Arc<Level>, runtime: &Handle) {
        // A hint: whether some worker has tasks, or looks for some.
        let is_some_busy = self.parked.load(SeqCst) < self.workers;
        if is_some_busy && self.doze.lasts() && self.doze.end() {
            let level = Arc::downgrade(level);
            let (this, runtime) = (self.clone(), runtime.clone());
            ticker::at_each_tick(move || {
                let level = level.upgrade();
                level.is_some_and(|level| this.look(&level, &runtime))
            });
            ticker::ask_for_ticks();
        }
    }

    /// On the ticker. False if it need not look again.
    fn look(&self, level: &Level, runtime: &Handle) -> bool {
        if !level.has_queued() && self.doze.begin(|| !level.has_queued()) {
            return false;
        }
        if self.parked.load(SeqCst) > 0 {
            runtime.spawn(async {});
        }
        ticker::ask_for_ticks();
        true
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;
    use std::time::Duration;

    use crate::{Backend, CpuRuntime};

    const NAME: &str = "stranded";
    /// For a test that hangs.
    const LIMIT: Duration = Duration::from_secs(60);

    /// Holds a worker that is about to park until it is dropped or sent to.
    type Gate = Sender<()>;
    static GATES: Mutex<Option<(usize, Sender<Gate>)>> = Mutex::new(None);

    /// What the runtimes of this crate's tests call before a worker parks.
    pub(in crate::pool) fn before_park() {
        if !thread::current()
            .name()
            .is_some_and(|name| name.starts_with(NAME))
        {
            return;
        }
        let mut gates = GATES.lock().unwrap();
        let Some((left @ 1.., sender)) = gates.as_mut() else {
            return;
        };
        *left -= 1;
        let (gate, opened) = channel();
        sender.send(gate).unwrap();
        drop(gates);
        let _ = opened.recv();
    }

    /// A job that tells when it has begun, and ends when the sender is dropped.
    fn blocked(cpu: &CpuRuntime) -> Sender<()> {
        let ((begins, begun), (end, ended)) = (channel(), channel::<()>());
        cpu.spawn_cpu(move || {
            begins.send(()).unwrap();
            let _ = ended.recv();
        })
        .detach();
        received(&begun);
        end
    }

    fn received<T>(from: &Receiver<T>) -> T {
        from.recv_timeout(LIMIT).expect("the lane hangs")
    }

    #[test]
    fn a_job_does_not_wait_beside_a_worker_that_parked_without_a_look() {
        let io = ::tokio::runtime::Runtime::new().unwrap();
        let settings = CpuRuntime::builder().io_handle(io.handle().clone());
        let settings = settings.backend(Backend::Runtime).thread_name(NAME);
        let cpu = settings.worker_threads(2).build().unwrap();
        let (first, second) = (blocked(&cpu), blocked(&cpu));
        let (gates, held) = channel();
        *GATES.lock().unwrap() = Some((2, gates));
        drop(first);
        let searching = received(&held);
        drop(second);
        // It does not search, since the other one does.
        let not_searching = received(&held);
        drop(searching);
        let blocks = blocked(&cpu);
        let (runs, has_run) = channel();
        // Tokio wakes no worker: none has parked, as it counts.
        cpu.spawn_cpu(move || runs.send(()).unwrap()).detach();
        drop(not_searching);
        received(&has_run);
        drop(blocks);
    }
}
