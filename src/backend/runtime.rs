//! The other backend: a dedicated Tokio runtime, with timers and without an
//! I/O driver, for futures that call `tokio::spawn` on CPU-heavy parts of
//! themselves.
//!
//! A job is one Tokio task, which *adopts* the oldest job of the lane's queue
//! when it is first polled. From then on the job's waker wakes that task, so
//! Tokio schedules the job as any of its own: its queues, its cooperative
//! budget. Kicks and queued jobs are equal in number; an adopter that finds the
//! queue empty (a shutdown swept it) ends.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::context;
use crate::handle::Handle;
use crate::job::completion;
use crate::job::state::Cause;
use crate::job::{After, Run};
use crate::lane::{Lane, Level};
use crate::panics;

/// How long a thread may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct CpuTokio {
    /// Taken by the warden when the lane closes.
    owner: Mutex<Option<Runtime>>,
    handle: tokio::runtime::Handle,
}

impl CpuTokio {
    /// Starts the workers and waits until each has run its start hook.
    pub(super) fn start(level: &Level) -> io::Result<Self> {
        let (lane, priority) = (level.lane(), level.priority());
        let threads = lane.settings.threads;
        let hooks = lane.settings.hooks.clone();
        let (started, all_started) = mpsc::channel();
        let (ready, all_ready) = mpsc::channel();
        let next_index = AtomicUsize::new(0);
        let stop_hooks = hooks.clone();
        // Weak: Tokio keeps its hooks as long as anyone has a handle of the
        // runtime, and the lane has one.
        let weak_lane = Arc::downgrade(lane);
        // Threads of Tokio's blocking pool come through here as well.
        let on_start = move || {
            if let Some(lane) = weak_lane.upgrade() {
                lane.thread_started();
                // Tokio makes more threads wherever `spawn_blocking` is
                // called: each weighs itself.
                lane.weigh_thread(priority);
                let level = Level::new(lane, priority);
                let index = next_index.fetch_add(1, SeqCst);
                if index < threads {
                    context::enter_worker(Handle::new(level), index);
                } else {
                    // There one may wait for the lane.
                    context::set_own_handle(Some(Handle::new(level)));
                }
            }
            // Nobody listens any more once the workers are up.
            let _ = started.send(());
            hooks.started();
            let _ = ready.send(());
        };
        let on_stop = move || {
            stop_hooks.stopping();
            if let Some(handle) = context::leave_worker() {
                handle.level().lane().thread_ended();
            }
        };
        let next_name = AtomicUsize::new(0);
        let named_lane = Arc::downgrade(lane);
        let name = move || {
            let index = next_name.fetch_add(1, SeqCst);
            let lane = named_lane.upgrade();
            lane.map_or_else(String::new, |lane| {
                lane.settings.thread_name(priority, index)
            })
        };
        try_threads(threads)?;
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(threads)
            .enable_time()
            .thread_name_fn(name)
            .on_thread_start(on_start)
            .on_thread_stop(on_stop);
        let runtime = match panics::catch(|| builder.build()) {
            Ok(runtime) => runtime?,
            Err(payload) => return Err(io::Error::other(payload.text())),
        };
        for _ in 0..threads {
            // Whether Tokio got fewer threads than it was asked for, it does
            // not say.
            if all_started.recv_timeout(PATIENCE).is_err() {
                runtime.shutdown_background();
                return Err(io::Error::other(
                    "some of the runtime's workers did not start",
                ));
            }
        }
        for _ in 0..threads {
            all_ready
                .recv()
                .expect("the runtime, which is here, holds the sender in its start hook");
        }
        Ok(Self {
            handle: runtime.handle().clone(),
            owner: Mutex::new(Some(runtime)),
        })
    }

    pub(super) fn kick(&self, level: &Level) {
        let adopter = Adopter {
            level: level.clone(),
            job: None,
        };
        // After a shutdown Tokio drops it at once, which is as well: the
        // warden sees to the queue.
        drop(self.handle.spawn(adopter));
    }

    pub(super) fn retire(&self) {
        let runtime = self.owner().take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }

    pub(super) fn is_retired(&self) -> bool {
        self.owner().is_none()
    }

    fn owner(&self) -> MutexGuard<'_, Option<Runtime>> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CpuTokio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuTokio").finish_non_exhaustive()
    }
}

/// Whether so many threads are to be had, and one for good measure.
///
/// A Tokio runtime that is built where they are not panics (1.54), and if it
/// got some of its workers, it waits for them for ever while it unwinds. So it
/// is asked before. Others may take them between; that is left to chance.
fn try_threads(n: usize) -> io::Result<()> {
    let gate = Mutex::new(());
    thread::scope(|scope| {
        let closed = gate.lock();
        let wait = || drop(gate.lock());
        let threads = (0..=n).map(|_| thread::Builder::new().spawn_scoped(scope, wait));
        let outcome = threads.collect::<io::Result<Vec<_>>>();
        drop(closed);
        // Joined: then the system counts them no more.
        let join = |thread: thread::ScopedJoinHandle<'_, ()>| drop(thread.join());
        outcome.map(|threads| threads.into_iter().for_each(join))
    })
}

struct Adopter {
    level: Level,
    job: Option<Arc<dyn Run>>,
}

impl Future for Adopter {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let job = match &self.job {
            Some(job) => job.clone(),
            None => match self.level.pop() {
                Some(job) => self.job.insert(job).clone(),
                None => return Poll::Ready(()),
            },
        };
        self.level.pause_for_quota(&*job);
        if let Some(link) = job.link() {
            link.driver.register(cx.waker());
        }
        match self.level.step(job.clone()) {
            After::Nothing => {}
            After::Wake(waker) => completion::wake(Some(waker)),
            After::Again { .. } => cx.waker().wake_by_ref(),
        }
        if job.has_ended() {
            // It may have been closed just now, after its step: whoever did
            // that woke this task in vain.
            job.discard();
            self.job = None;
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Drop for Adopter {
    /// Tokio lets go of its tasks when the runtime ends.
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            job.close(Cause::ShutDown);
            Lane::discard(vec![job]);
        }
    }
}
