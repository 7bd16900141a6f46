//! Starts the runtime of a priority, and its threads.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use std::{io, thread};

use ::tokio::runtime::Builder;

use super::stranded::Stranded;
use super::{CpuTokio, DrainTasks, SPARE_DRAIN_TASKS};
use crate::lane::{Submitter, ThreadSettings, Workers, thread as lane_thread};
use crate::panics;
use crate::trace::warn_of_block_in_place;

/// After how many polls a busy worker looks at the timers and at what has called
/// `tokio::task::yield_now`. Tokio's default of 61 is made for polls of microseconds.
const EVENT_INTERVAL: u32 = 8;

/// How long a thread may take to start.
const START_LIMIT: Duration = Duration::from_secs(10);

impl CpuTokio {
    /// Starts the workers and waits until each has run its start hook.
    pub(crate) fn start(own: &Submitter) -> io::Result<Arc<dyn Workers>> {
        let (lane, priority) = (&own.levels.lane, own.priority);
        let threads = lane.settings.threads(priority);
        let (started, all_started) = mpsc::channel();
        let (ready, all_ready) = mpsc::channel();
        // Relaxed, as for `next_name` below: the numbers only have to differ.
        let next_index = AtomicUsize::new(0);
        // Weak: Tokio keeps its hooks as long as a handle of the runtime exists, and
        // the lane holds one.
        let levels = Arc::downgrade(&own.levels);
        // The threads of Tokio's blocking pool run this hook as well.
        let on_start = move || {
            if let Some(levels) = levels.upgrade() {
                // Tokio starts more threads wherever `spawn_blocking` is called: each
                // sets its own nice value.
                lane_thread::join_lane(&levels.lane, Some(priority));
                let own = Submitter::new(levels, priority);
                let index = next_index.fetch_add(1, Relaxed);
                // Only the workers have an index: other threads may wait for the lane.
                lane_thread::join_level(own, (index < threads).then_some(index));
            }
            // An error only means that the workers are up and the receiver is gone.
            let _ = started.send(());
            lane_thread::ask_own(|own| {
                let _io = own.levels.lane.io.enter();
                own.levels.lane.settings.run_start_hooks();
            });
            let _ = ready.send(());
        };
        let stranded = Arc::new(Stranded::new(threads));
        let on_park = {
            let stranded = stranded.clone();
            move || {
                stranded.parked.fetch_add(1, SeqCst);
                #[cfg(test)]
                super::tests::before_park();
                if lane_thread::ask_own(|_| ()).is_none() {
                    warn_of_block_in_place();
                }
            }
        };
        let on_unpark = {
            let stranded = stranded.clone();
            move || {
                stranded.parked.fetch_sub(1, SeqCst);
            }
        };
        let next_name = AtomicUsize::new(0);
        let prefix = lane.settings.thread_prefix(priority);
        let name = move || format!("{prefix}-{}", next_name.fetch_add(1, Relaxed));
        try_threads(&lane.settings, threads)?;
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(threads)
            .enable_time()
            .event_interval(EVENT_INTERVAL)
            .thread_name_fn(name)
            .on_thread_start(on_start)
            .on_thread_park(on_park)
            .on_thread_unpark(on_unpark)
            .on_thread_stop(lane_thread::leave_level);
        if let Some(size) = lane.settings.stack_size {
            builder.thread_stack_size(size);
        }
        let (tell, built) = mpsc::channel();
        thread::Builder::new().spawn(move || tell.send(panics::catch(|| builder.build())))?;
        let no_room = |_| io::Error::other("the runtime's threads did not start: there is no room");
        let built = built.recv_timeout(START_LIMIT).map_err(no_room)?;
        let runtime = built.unwrap_or_else(|payload| Err(io::Error::other(payload.text())))?;
        for _ in 0..threads {
            // Tokio does not report if it got fewer threads than requested.
            if all_started.recv_timeout(START_LIMIT).is_err() {
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
        Ok(Arc::new(Self {
            handle: runtime.handle().clone(),
            owner: Mutex::new(Some(runtime)),
            drain_tasks: Arc::new(DrainTasks::new(threads + SPARE_DRAIN_TASKS)),
            stranded,
        }))
    }
}

/// Checks that the system can start the threads of a priority, and one more.
///
/// If it cannot, Tokio (1.54) panics when it builds the runtime. If some of the workers
/// have started, it then waits for them forever while it unwinds: with three of four
/// threads, `build` hangs. So this function checks before. Other programs, or this one's
/// allocator, may still take the room in between: then a thread of its own hangs, and `start`
/// gives up after some [`START_LIMIT`].
fn try_threads(settings: &ThreadSettings, threads: usize) -> io::Result<()> {
    let barrier = Mutex::new(());
    thread::scope(|scope| {
        let closed = barrier.lock();
        // An allocation: the allocator may take memory for each thread that has one.
        let wait = || drop(black_box(Box::new(barrier.lock())));
        let start = |_| settings.thread().spawn_scoped(scope, wait);
        let threads = (0..=threads).map(start);
        let outcome = threads.collect::<io::Result<Vec<_>>>();
        drop(closed);
        // Join them, so that the system no longer counts them.
        let join = |thread: thread::ScopedJoinHandle<'_, ()>| drop(thread.join());
        outcome.map(|threads| threads.into_iter().for_each(join))
    })
}
