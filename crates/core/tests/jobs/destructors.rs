//! What do destructors see, and what becomes of their panics?

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll};
use std::thread;

use crate::support::{lanes, suspended};

/// Sends whether it is dropped by a panic, and may panic itself.
struct Sees {
    panicking: Sender<bool>,
    panics: bool,
}

impl Drop for Sees {
    fn drop(&mut self) {
        self.panicking.send(thread::panicking()).unwrap();
        assert!(!self.panics, "in the destructor");
    }
}

/// A combinator, or any other future that is no `async` block, where the compiler drops the
/// captures while the panic unwinds.
struct Panics(Sees);

impl Future for Panics {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        panic!("in the job, which has {}", self.0.panics);
    }
}

/// A guard that rolls back on a panic asks `thread::panicking()`, as Tokio's tasks let it. The
/// future of a job was dropped after the unwinding, and the guard committed.
#[test]
fn the_future_of_a_job_that_panics_sees_the_panic() {
    let lanes = lanes(1);
    let (cpu, (send, seen)) = (lanes.cpu.handle().clone(), channel());
    for panics in [false, true] {
        let future = || {
            let panicking = send.clone();
            Panics(Sees { panicking, panics })
        };
        for task in [cpu.spawn(future()), cpu.spawn_io(future())] {
            let payload = task.wait().unwrap_err().into_panic();
            let text = payload.downcast::<String>().unwrap();
            assert!(text.starts_with("in the job"), "{text}");
            assert!(seen.recv().unwrap());
        }
    }
    assert_eq!(cpu.spawn(async { 1 }).wait().unwrap(), 1);
}

/// An awaiter does not wait for the destructors of a cancelled job, and so learns nothing
/// of their panics.
#[test]
fn a_panic_of_a_cancelled_job_s_destructor_is_not_its_outcome() {
    let lanes = lanes(1);
    let (send, seen) = channel();
    let sees = Sees {
        panicking: send,
        panics: true,
    };
    let task = suspended(lanes.cpu.handle(), sees);
    task.abort();
    assert!(task.wait().unwrap_err().is_cancelled());
    assert!(!seen.recv().unwrap());
    assert_eq!(lanes.cpu.spawn(async { 1 }).wait().unwrap(), 1);
}
