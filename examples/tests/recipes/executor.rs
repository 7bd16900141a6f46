//! `dedicated_executor`: what the callers of one rely on.

use std::future::pending;
use std::sync::mpsc;

use tokio::runtime::{Handle, Runtime};

use crate::dedicated_executor::{DedicatedExecutor, JobError};
use crate::support::{limit_this_thread, thread_name};

/// And its I/O runtime. The test has its time limit by that.
fn executor() -> (Runtime, DedicatedExecutor) {
    limit_this_thread();
    let io = Runtime::new().unwrap();
    let entered = io.enter();
    let executor = DedicatedExecutor::new("query", 1).unwrap();
    drop(entered);
    (io, executor)
}

#[test]
fn a_caller_s_tasks_compute_on_the_executor_and_its_io_does_not() {
    let (io, executor) = executor();
    let names = executor.spawn(async {
        let nested = tokio::spawn(async { thread_name() }).await.unwrap();
        let on_io = twolane::spawn_io(async { Handle::current().id() });
        (thread_name(), nested, on_io.await.unwrap())
    });
    let (own, nested, on_io) = io.block_on(names).unwrap();
    assert_eq!(
        (own.as_str(), nested.as_str()),
        ("query-tokio-0", "query-tokio-0")
    );
    assert_eq!(on_io, io.handle().id());
}

#[test]
fn dropping_the_task_drops_its_future() {
    let (_io, executor) = executor();
    let (held, dropped) = mpsc::channel::<()>();
    let (begins, begun) = mpsc::channel();
    let task = executor.spawn(async move {
        let _held = held;
        begins.send(()).unwrap();
        pending::<()>().await
    });
    begun.recv().unwrap();
    drop(task);
    assert!(dropped.recv().is_err());
}

#[test]
fn a_panic_and_a_shutdown_are_errors() {
    let (io, executor) = executor();
    let panics = executor.spawn(async { panic!("no such table") });
    match io.block_on(panics) {
        Err(JobError::Panic { msg }) => assert!(msg.contains("no such table"), "{msg}"),
        other => panic!("{other:?}"),
    }
    let waits = executor.spawn(pending::<()>());
    executor.clone().shutdown();
    let late = executor.spawn(async {});
    for gone in [io.block_on(waits), io.block_on(late)] {
        assert!(matches!(gone, Err(JobError::WorkerGone)), "{gone:?}");
    }
    io.block_on(executor.join());
}
