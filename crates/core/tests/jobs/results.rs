//! Does what a job ends with reach its awaiter, whole?

use std::any::Any;
use std::collections::BTreeSet;
use std::io;
use std::panic::panic_any;
use std::pin::Pin;
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll};

use crate::support::{Lanes, PanicsOnDrop, Stuck, gives, lanes, nothing, suspended, thread_name};
use twolane_core::JoinError;

#[derive(Debug, PartialEq)]
struct OwnPayload(Vec<u8>);

/// Each kind of payload, from a closure and from a future, comes back as it
/// was thrown.
#[test]
fn payloads_come_back_whole() {
    let (cpu, _lanes) = lanes(2).and_handle();

    let text = cpu.spawn_cpu(|| panic!("a str")).wait().unwrap_err();
    assert_eq!(text.to_string(), "the job panicked: a str");
    assert_eq!(*text.into_panic().downcast::<&str>().unwrap(), "a str");

    let n = 7;
    let string = cpu.spawn(async move { panic!("a String, {n}") }).wait();
    let string = string.unwrap_err();
    assert_eq!(string.to_string(), "the job panicked: a String, 7");
    let payload = string.try_into_panic().unwrap();
    assert_eq!(*payload.downcast::<String>().unwrap(), "a String, 7");

    let throw = || -> () { panic_any(OwnPayload(vec![1, 2])) };
    let [closure, other, io] = [
        cpu.spawn_cpu(throw),
        cpu.spawn_cpu(throw),
        cpu.spawn_io(async move { throw() }),
    ]
    .map(|task| task.wait().unwrap_err());
    // An `io::Error` keeps the whole error.
    let through_io_error = |error: JoinError| {
        let inner = io::Error::from(error).into_inner().unwrap();
        *inner.downcast::<JoinError>().unwrap()
    };
    for error in [closure, through_io_error(other), io] {
        let payload = error.into_panic().downcast::<OwnPayload>().unwrap();
        assert_eq!(*payload, OwnPayload(vec![1, 2]));
    }
}

/// Rayon aborts, and Tokio replaces a worker, when a panic gets through.
#[test]
fn a_hundred_panics_and_all_threads_are_there() {
    let threads = 3;
    let lanes = lanes(threads);
    let everyone = |lanes: &Lanes| -> BTreeSet<String> {
        // Only as many threads as there are jobs can get past it.
        let barrier = Arc::new(Barrier::new(threads));
        let tasks: Vec<_> = (0..threads)
            .map(|_| {
                let barrier = barrier.clone();
                lanes.cpu.spawn_cpu(move || {
                    barrier.wait();
                    format!("{} {:?}", thread_name(), std::thread::current().id())
                })
            })
            .collect();
        tasks.into_iter().map(|task| task.wait().unwrap()).collect()
    };
    let before = everyone(&lanes);
    assert_eq!(before.len(), threads);
    for n in 0..100 {
        let error = lanes
            .cpu
            .spawn_cpu(move || panic!("{n}"))
            .wait()
            .unwrap_err();
        assert_eq!(error.to_string(), format!("the job panicked: {n}"));
    }
    assert_eq!(everyone(&lanes), before);
}

/// No awaiter takes the panic, and the process lives.
#[test]
fn panics_of_detached_jobs() {
    // The payload of the payload's destructor has a destructor that panics.
    struct Nested;
    impl Drop for Nested {
        fn drop(&mut self) {
            panic_any(PanicsOnDrop);
        }
    }
    let (cpu, _lanes) = lanes(1).and_handle();
    let panics = || panic!("without an awaiter");
    cpu.spawn_cpu(panics).detach();
    cpu.spawn(async move { panics() }).detach();
    cpu.spawn_io(async move { panics() }).detach();
    cpu.spawn_cpu(|| panic_any(PanicsOnDrop)).detach();
    cpu.spawn_cpu(|| panic_any(Nested)).detach();
    assert_eq!(cpu.spawn_cpu(gives(1)).wait().unwrap(), 1);
}

/// A payload with a destructor that panics, dropped in each way that there is.
#[test]
fn payloads_whose_destructor_panics() {
    let lanes = lanes(1);
    let throw = || lanes.cpu.spawn_cpu(|| panic_any(PanicsOnDrop));
    // With the error.
    drop(throw().wait().unwrap_err());
    // Taken out: the taker's from then on.
    let payload: Box<dyn Any + Send> = throw().wait().unwrap_err().into_panic();
    std::mem::forget(payload);
    // Unread, with the task, before or after the end.
    drop(throw());
    let unread = throw();
    lanes.cpu.spawn_cpu(nothing).wait().unwrap();
    drop(unread);
    assert_eq!(lanes.cpu.spawn_cpu(gives(1)).wait().unwrap(), 1);
}

/// async-task aborts the process on each of these.
#[test]
fn destructors_that_panic_are_survived() {
    let lanes = lanes(1);
    let cpu = lanes.cpu.handle();
    let still_there = || assert_eq!(cpu.spawn_cpu(gives(1)).wait().unwrap(), 1);

    // A closure's captures, dropped as it ends: its own panic.
    let captured = PanicsOnDrop;
    let task = cpu.spawn_cpu(move || {
        let _captured = captured;
    });
    assert!(task.wait().unwrap_err().is_panic());
    still_there();

    // The captures of a closure that never ran.
    let stuck = Stuck::start(cpu);
    let captured = PanicsOnDrop;
    drop(cpu.spawn_cpu(move || drop(captured)));
    stuck.end();
    still_there();

    // A future's, dropped in suspension.
    drop(suspended(cpu, PanicsOnDrop));
    still_there();

    // A future's own, after it was ready: the output counts.
    struct ReadyThenPanics(PanicsOnDrop);
    impl Future for ReadyThenPanics {
        type Output = u8;
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u8> {
            let _ = &self.0;
            Poll::Ready(8)
        }
    }
    let ready = || ReadyThenPanics(PanicsOnDrop);
    assert_eq!(cpu.spawn(ready()).wait().unwrap(), 8);
    assert_eq!(cpu.spawn_io(ready()).wait().unwrap(), 8);
    still_there();

    // Outputs that are never read: detached, and dropped while it runs.
    cpu.spawn_cpu(|| PanicsOnDrop).detach();
    cpu.spawn(async { PanicsOnDrop }).detach();
    cpu.spawn_io(async { PanicsOnDrop }).detach();
    let (task, let_go) = Stuck::start(cpu).split();
    drop(task);
    let_go.send(PanicsOnDrop).unwrap();
    still_there();

    // And with a task that has ended.
    let ended = cpu.spawn_cpu(|| PanicsOnDrop);
    still_there();
    drop(ended);
    still_there();
}
