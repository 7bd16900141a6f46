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
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::ThreadSettings;
use crate::context;
use crate::handle::Handle;
use crate::job::Run;
use crate::job::state::Cause;
use crate::lane::Lane;

/// How long a thread may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct CpuTokio {
    /// Taken by the warden when the lane closes.
    owner: Mutex<Option<Runtime>>,
    handle: tokio::runtime::Handle,
}

impl CpuTokio {
    /// Starts the workers and waits until each has run its start hook.
    pub(crate) fn start(lane: &Arc<Lane>, settings: ThreadSettings) -> io::Result<Self> {
        let ThreadSettings {
            threads,
            name,
            hooks,
        } = settings;
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
                let index = next_index.fetch_add(1, SeqCst);
                if index < threads {
                    context::enter_worker(Handle::new(lane), index);
                } else {
                    // There one may wait for the lane.
                    context::set_own_handle(Some(Handle::new(lane)));
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
                handle.lane().thread_ended();
            }
        };
        let next_name = AtomicUsize::new(0);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_time()
            .thread_name_fn(move || format!("{name}-{}", next_name.fetch_add(1, SeqCst)))
            .on_thread_start(on_start)
            .on_thread_stop(on_stop)
            .build()?;
        for _ in 0..threads {
            // Where the system has too few threads to give, Tokio makes do
            // with less than it was asked for.
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

    pub(super) fn kick(&self, lane: &Arc<Lane>) {
        let adopter = Adopter {
            lane: lane.clone(),
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

struct Adopter {
    lane: Arc<Lane>,
    job: Option<Arc<dyn Run>>,
}

impl Future for Adopter {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let job = match &self.job {
            Some(job) => job.clone(),
            None => match self.lane.pop() {
                Some(job) => self.job.insert(job).clone(),
                None => return Poll::Ready(()),
            },
        };
        job.link().driver.register(cx.waker());
        self.lane.step(job.clone());
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
