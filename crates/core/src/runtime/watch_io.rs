//! `Builder::watch_io`: the watch of an I/O lane.
//!
//! Its thread counts as a thread of the lane. So a shutdown resolves when the last call of a
//! hook has returned, and no call follows.

use std::sync::Arc;
use std::sync::atomic::{Ordering::SeqCst, fence};
use std::sync::mpsc;
use std::{io, thread};

use stallwatch::Watch;

use super::Builder;
use crate::build_error::BuildError;
use crate::lane::{self, Levels};
use crate::metrics::histogram::AtomicHistogram;
use crate::pace::clock::nanos;

impl Builder {
    /// Watches the I/O lane: a poll that takes too long there is reported while it lasts, with
    /// the name of what is polled, whether it computes or blocks, and what to do about it.
    ///
    /// It costs a thread, which takes 0.04 % of a core while both lanes are idle and 0.3 % while they
    /// are in use, and about 120 instructions for each step of a job. Default: off. The guide has
    /// all costs and limits (`twolane::guide::p99`).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::{CpuRuntime, watch::Watch};
    ///
    /// let watch = Watch::new().on_stall(|stall| eprintln!("{stall}"));
    /// let cpu = CpuRuntime::builder().watch_io(watch).build().unwrap();
    /// # let _ = cpu;
    /// # }
    /// ```
    ///
    /// # Shutdown
    ///
    /// The watch's thread is one of the lane's. A [`shutdown`] resolves after the last call of a
    /// [hook](Watch::on_stall) has returned, and no call follows. [`shutdown_timeout`] resolves at
    /// its limit, and counts the thread if it is in a call; [`shutdown_background`] and a drop
    /// wait for nothing. A hook may call each of these. If it also waits for the end, which waits
    /// for the hook, that panics.
    ///
    /// [`shutdown`]: crate::CpuRuntime::shutdown
    /// [`shutdown_timeout`]: crate::CpuRuntime::shutdown_timeout
    /// [`shutdown_background`]: crate::CpuRuntime::shutdown_background
    pub fn watch_io(mut self, watch: Watch) -> Self {
        self.watch_io = Some(watch);
        self
    }
}

/// What a closure is told that waits while others queue.
const DO_NOT_WAIT: &str = "It keeps a thread of the CPU lane. Wait in `spawn_blocking`, await before \
    the job begins, or have `stream_from_cpu` hand out what it computes";

pub(super) fn start(levels: &Arc<Levels>, watch: Watch) -> Result<(), BuildError> {
    let lane = &levels.lane;
    let lag = Arc::new(AtomicHistogram::default());
    let _ = lane.io_watch.lag.set(lag.clone());
    let watch = watch.on_probe(move |it| lag.add(nanos(it.waited())));
    let levels = Arc::downgrade(levels);
    let watch = lane.watched_jobs.iter().fold(watch, |watch, pool| {
        let levels = levels.clone();
        let has_queued = move || levels.upgrade().is_some_and(|levels| levels.has_queued());
        watch.pool(&pool.clone().with_waits(DO_NOT_WAIT, has_queued))
    });
    let watch = watch.thread_name(format!("{}-watch", lane.settings.name));
    let own = lane.clone();
    let io = lane.io.handle.as_ref().expect("`build` has checked it");
    let started = watch.start_on(io, |name, main| {
        let (begun, wait) = mpsc::channel::<()>();
        giveway::spawn(name, move || {
            lane::thread::join_lane(&own, None);
            let _ = own.io_watch.thread.set(thread::current().id());
            drop(begun);
            main();
        })?;
        // Until it is counted: a shutdown waits for it.
        let _ = wait.recv();
        Ok(())
    });
    let _ = lane.io_watch.watcher.set(started.map_err(build_error)?);
    // The lane may close meanwhile, with its I/O runtime. Either this sees that, or the control
    // thread, after a fence of its own, finds the watcher.
    fence(SeqCst);
    if lane.is_closed() {
        lane.io_watch.stop();
    }
    Ok(())
}

fn build_error(error: io::Error) -> BuildError {
    match error.kind() {
        // Its threshold is too low.
        io::ErrorKind::InvalidInput => BuildError::new(error.to_string()),
        _ => BuildError::no_thread(error),
    }
}
