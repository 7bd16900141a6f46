//! Values on the I/O lane.

use std::sync::mpsc;

use crate::support::{Dropped, Lanes, PanicsOnDrop};
use crate::tap::listen;
use twolane::HandleExt;

/// The value of an `IoOwned` has a destructor that no task can report on.
#[test]
fn the_drop_of_a_value_on_the_io_lane() {
    listen(|log, Lanes { cpu, io }| {
        let handle = cpu.handle().clone();
        let panicked = [
            "ERROR twolane: the destructor of a value on the I/O lane panicked",
            "the destructor panics",
        ];
        let too_late = "WARN twolane: a value of an IoOwned is dropped after the end";
        drop(handle.io_owned(PanicsOnDrop));
        log.says(&panicked);
        let (dropped, drops) = mpsc::channel();
        drop(handle.io_owned(Dropped(dropped.clone())));
        drops.recv().unwrap();
        log.is_silent();

        let value = handle.io_owned(Dropped(dropped));
        let panics = handle.io_owned(PanicsOnDrop);
        drop(io);
        drop(value);
        drops.recv().unwrap();
        log.says(&[too_late, "Dropped"]);
        drop(panics);
        log.says(&[too_late, "PanicsOnDrop"]);
        log.says(&panicked);
    });
}
