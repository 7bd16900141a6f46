//! A thread drops what a shutdown finds: does it end with the others? (How many such threads there
//! are: `tests/stream/reaper.rs` of `twolane`.)

use std::sync::mpsc;

use twolane_core::JoinErrorKind;

use crate::support::wait::wait_until;
use crate::support::{Dropped, Stuck, lanes};

/// It has nothing to do then, and is no thread that "still runs".
#[test]
fn a_thread_that_has_dropped_all_is_not_left() {
    let lanes = lanes(1);
    let stuck = Stuck::start(lanes.cpu.handle());
    let (dropped, drops) = mpsc::channel();
    let state = Dropped(dropped);
    let queued = lanes.cpu.spawn_cpu(move || drop(state));
    let over = lanes.cpu.shutdown();
    assert_eq!(queued.wait().unwrap_err().kind(), JoinErrorKind::Shutdown);
    drops.recv().unwrap();
    // It needs a moment to say that it is done.
    let left = || lanes.cpu.shutdown_timeout(std::time::Duration::ZERO).wait();
    wait_until(|| left().threads == 1);
    assert_eq!((left().jobs, left().threads), (1, 1));
    stuck.end();
    assert!(over.wait().is_empty());
}
