//! Does what a job ends with reach its awaiter, whole?

use std::any::Any;
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Barrier};

use crate::support::{self, PanicsOnDrop, lanes, thread_name, time_limit};
use twolane_core::JoinError;

#[derive(Debug, PartialEq)]
struct OwnPayload(Vec<u8>);

/// Each kind of payload, from a closure and from a future, comes back as it
/// was thrown.
#[test]
fn payloads_come_back_whole() {
    let _limit = time_limit();
    let lanes = lanes(2);
    let cpu = &lanes.cpu;

    let text = cpu.spawn_cpu(|| panic!("a str")).wait().unwrap_err();
    assert_eq!(text.to_string(), "the job panicked: a str");
    assert_eq!(*text.into_panic().downcast::<&str>().unwrap(), "a str");

    let n = 7;
    let string = cpu.spawn(async move { panic!("a String, {n}") }).wait();
    let string = string.unwrap_err();
    assert_eq!(string.to_string(), "the job panicked: a String, 7");
    let payload = string.try_into_panic().unwrap();
    assert_eq!(*payload.downcast::<String>().unwrap(), "a String, 7");

    let own = cpu.spawn_cpu(|| std::panic::panic_any(OwnPayload(vec![1, 2])));
    let payload = own.wait().unwrap_err().into_panic();
    assert_eq!(
        *payload.downcast::<OwnPayload>().unwrap(),
        OwnPayload(vec![1, 2])
    );

    let io = cpu
        .handle()
        .spawn_io(async { std::panic::panic_any(OwnPayload(vec![3])) });
    let payload = io.wait().unwrap_err().into_panic();
    assert_eq!(
        *payload.downcast::<OwnPayload>().unwrap(),
        OwnPayload(vec![3])
    );
}

/// Through an `io::Error`, too, which keeps the whole error.
#[test]
fn an_io_error_keeps_the_payload() {
    let _limit = time_limit();
    let lanes = lanes(1);
    let failed = lanes
        .cpu
        .spawn_cpu(|| std::panic::panic_any(OwnPayload(vec![5])));
    let error = io::Error::from(failed.wait().unwrap_err());
    let inner = error.into_inner().unwrap().downcast::<JoinError>().unwrap();
    let payload = inner.into_panic().downcast::<OwnPayload>().unwrap();
    assert_eq!(*payload, OwnPayload(vec![5]));
}

/// Rayon aborts, and Tokio replaces a worker, when a panic gets through.
#[test]
fn a_hundred_panics_and_all_threads_are_there() {
    let _limit = time_limit();
    let threads = 3;
    let lanes = lanes(threads);
    let everyone = |lanes: &support::Lanes| -> BTreeSet<String> {
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
        let task = lanes.cpu.spawn_cpu(move || panic!("{n}"));
        assert_eq!(
            task.wait().unwrap_err().to_string(),
            format!("the job panicked: {n}")
        );
    }
    assert_eq!(everyone(&lanes), before);
}

/// No awaiter takes the panic, and the process lives.
#[test]
fn panics_of_detached_jobs() {
    let _limit = time_limit();
    let lanes = lanes(1);
    lanes
        .cpu
        .spawn_cpu(|| panic!("without an awaiter"))
        .detach();
    lanes
        .cpu
        .spawn(async { panic!("without an awaiter") })
        .detach();
    lanes
        .cpu
        .handle()
        .spawn_io(async { panic!("without an awaiter") })
        .detach();
    lanes
        .cpu
        .spawn_cpu(|| std::panic::panic_any(PanicsOnDrop))
        .detach();
    // The payload of the payload's destructor has a destructor that panics.
    struct Nested;
    impl Drop for Nested {
        fn drop(&mut self) {
            std::panic::panic_any(PanicsOnDrop);
        }
    }
    lanes
        .cpu
        .spawn_cpu(|| std::panic::panic_any(Nested))
        .detach();
    assert_eq!(lanes.cpu.spawn_cpu(|| 1).wait().unwrap(), 1);
}

/// A payload with a destructor that panics, dropped in each way that there is.
#[test]
fn payloads_whose_destructor_panics() {
    let _limit = time_limit();
    let lanes = lanes(1);
    let throw = || lanes.cpu.spawn_cpu(|| std::panic::panic_any(PanicsOnDrop));
    // With the error.
    drop(throw().wait().unwrap_err());
    // Taken out: the taker's from then on.
    let payload: Box<dyn Any + Send> = throw().wait().unwrap_err().into_panic();
    std::mem::forget(payload);
    // Unread, with the task, before or after the end.
    drop(throw());
    let unread = throw();
    lanes.cpu.spawn_cpu(|| ()).wait().unwrap();
    drop(unread);
    assert_eq!(lanes.cpu.spawn_cpu(|| 1).wait().unwrap(), 1);
}

/// async-task aborts the process on each of these.
#[test]
fn destructors_that_panic_are_survived() {
    let _limit = time_limit();
    let lanes = lanes(1);
    let cpu = &lanes.cpu;
    let still_there = || assert_eq!(cpu.spawn_cpu(|| 1).wait().unwrap(), 1);

    // A closure's captures, dropped as it ends: its own panic.
    let captured = PanicsOnDrop;
    let task = cpu.spawn_cpu(move || {
        let _captured = captured;
    });
    assert!(task.wait().unwrap_err().is_panic());
    still_there();

    // The captures of a closure that never ran.
    let (stuck, let_go) = support::Stuck::start(cpu.handle()).split();
    let captured = PanicsOnDrop;
    drop(cpu.spawn_cpu(move || drop(captured)));
    let_go.send(()).unwrap();
    stuck.wait().unwrap();
    still_there();

    // A future's, dropped in suspension.
    drop(support::suspended(cpu.handle(), PanicsOnDrop));
    still_there();

    // A future's own, after it was ready: the output counts.
    struct ReadyThenPanics(PanicsOnDrop);
    impl Future for ReadyThenPanics {
        type Output = u8;
        fn poll(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<u8> {
            let _ = &self.0;
            std::task::Poll::Ready(8)
        }
    }
    assert_eq!(cpu.spawn(ReadyThenPanics(PanicsOnDrop)).wait().unwrap(), 8);
    assert_eq!(
        cpu.handle()
            .clone()
            .spawn_io(ReadyThenPanics(PanicsOnDrop))
            .wait()
            .unwrap(),
        8
    );
    still_there();

    // Outputs that are never read: detached, and dropped while it runs.
    cpu.spawn_cpu(|| PanicsOnDrop).detach();
    cpu.spawn(async { PanicsOnDrop }).detach();
    cpu.handle().spawn_io(async { PanicsOnDrop }).detach();
    let (task, let_go) = support::Stuck::start(cpu.handle()).split();
    drop(task);
    let_go.send(PanicsOnDrop).unwrap();
    still_there();

    // And with a task that has ended.
    let ended = cpu.spawn_cpu(|| PanicsOnDrop);
    still_there();
    drop(ended);
    still_there();
}

/// Large, zero-sized and borrowed-static outputs, through `await` and `wait`,
/// and moved in and out unharmed.
#[test]
fn outputs_of_all_sizes() {
    let _limit = time_limit();
    let lanes = lanes(2);
    let big = [7_u8; 64 * 1024];
    assert_eq!(lanes.cpu.spawn_cpu(move || big).wait().unwrap(), big);
    lanes.cpu.spawn_cpu(|| ()).wait().unwrap();
    let lent: &'static str = lanes.cpu.spawn(async { "static" }).wait().unwrap();
    assert_eq!(lent, "static");
}
