//! Starts the watch of an I/O lane.
//!
//! Its thread counts as a thread of the lane. So a shutdown resolves when the last call of a
//! hook has returned, and no call follows.

use std::sync::Arc;
use std::sync::atomic::{Ordering::SeqCst, fence};
use std::sync::mpsc;

use stallwatch::{StartError, Watch};

use crate::build_error::BuildError;
use crate::lane::{Lane, thread};
use crate::os::starter;

pub(super) fn check(watch: &Watch) -> Result<(), BuildError> {
    watch.check().map_err(build_error)
}

pub(super) fn start(lane: &Arc<Lane>, watch: Watch) -> Result<(), BuildError> {
    #[cfg(feature = "metrics")]
    let watch = {
        let lag = lane.io_watch.lag.clone();
        watch.on_probe(move |waited| lag.add(waited))
    };
    let watch = watch
        .pool(&lane.pool)
        .thread_name(format!("{}-watch", lane.settings.name));
    let own = lane.clone();
    let started = watch.start_on(lane.io.handle(), |name, main| {
        let (begun, wait) = mpsc::channel::<()>();
        starter::spawn(name, move || {
            thread::begin(&own);
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

fn build_error(error: StartError) -> BuildError {
    match error {
        StartError::Threshold { asked, min } => BuildError::WatchThreshold { asked, min },
        StartError::Thread(error) => BuildError::Spawn(error),
        other => BuildError::Spawn(std::io::Error::other(other)),
    }
}
