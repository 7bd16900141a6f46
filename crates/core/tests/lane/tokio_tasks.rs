//! A job that has parts, which it spawns with `tokio::spawn` inside `in_cpu_context`, runs beside them.

use std::sync::mpsc;

use crate::support::busy::Busy;
use crate::support::{lanes, time_limit};
use twolane_core::in_cpu_context;

/// What a future spawns in the CPU context gets its turn in a lane that is never empty.
#[test]
fn tokios_own_tasks_get_their_turn() {
    let _limit = time_limit();
    let lanes = lanes(1);
    // When one runs, the other is queued.
    let _busy = Busy::with(2, lanes.cpu.handle());
    let (had, has_had) = mpsc::channel();
    let spawns = async move {
        tokio::spawn(async move {
            // Else it would be polled next, from the LIFO slot.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            had.send(()).unwrap();
        });
    };
    lanes.cpu.spawn(in_cpu_context(spawns)).wait().unwrap();
    has_had.recv().unwrap();
}
