//! Values on the I/O lane.

use std::sync::mpsc::{self, Sender};

use crate::support::Lanes;
use crate::tap::listen;
use twolane::HandleExt;

struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("of a destructor");
    }
}

/// The value of an `IoOwned` has a destructor that no task can report on.
#[test]
fn the_drop_of_a_value_on_the_io_lane() {
    struct Connection(Sender<()>);
    impl Drop for Connection {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }
    listen(|log, Lanes { cpu, io }| {
        let handle = cpu.handle().clone();
        let panicked = [
            "ERROR twolane: the destructor of a value on the I/O lane panicked",
            "of a destructor",
        ];
        let too_late = "WARN twolane: a value of an IoOwned is dropped after the end";
        drop(handle.io_owned(PanicsOnDrop));
        log.says(&panicked);
        let (dropped, drops) = mpsc::channel();
        drop(handle.io_owned(Connection(dropped.clone())));
        drops.recv().unwrap();
        log.is_silent();

        let connection = handle.io_owned(Connection(dropped));
        let panics = handle.io_owned(PanicsOnDrop);
        drop(io);
        drop(connection);
        drops.recv().unwrap();
        log.says(&[too_late, "Connection"]);
        drop(panics);
        log.says(&[too_late, "PanicsOnDrop"]);
        log.says(&panicked);
    });
}
