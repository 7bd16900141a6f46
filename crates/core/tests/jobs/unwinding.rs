//! A job that ends as one that it awaited did, by `JoinError::resume_unwind`.

use std::future::pending;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use futures::executor::block_on_stream;
use futures::stream;
use twolane_core::{JoinError, JoinErrorKind, Task};

use crate::support::{cpu_lane, lanes, suspended};

async fn or_unwind<T>(task: Task<T>) -> T {
    task.await.unwrap_or_else(|error| error.resume_unwind())
}

/// What a library does that spawns tasks of Tokio, and resumes their panics.
async fn by_a_task_of_tokio<T: Send + 'static>(task: Task<T>) -> T {
    match tokio::spawn(or_unwind(task)).await {
        Ok(value) => value,
        Err(error) => panic::resume_unwind(error.into_panic()),
    }
}

#[test]
fn a_shutdown_is_passed_on_without_a_panic() {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let is_here = panic
            .location()
            .is_some_and(|at| at.file().ends_with("unwinding.rs"));
        // The other test's payload is a number.
        if is_here && !panic.payload().is::<u32>() {
            PANICS.fetch_add(1, SeqCst);
        }
        before(panic);
    }));
    let lanes = lanes(1);
    let inner = cpu_lane(1, lanes.io.handle());
    let start = || suspended(inner.handle(), ());
    let jobs = [
        lanes.cpu.spawn(or_unwind(start())),
        lanes.cpu.spawn(by_a_task_of_tokio(start())),
        lanes.cpu.handle().spawn_io(or_unwind(start())),
        lanes.cpu.spawn_cpu({
            let job = start();
            || job.wait().unwrap_or_else(|error| error.resume_unwind())
        }),
    ];
    inner.shutdown_background();
    for job in jobs {
        let error = job.wait().unwrap_err();
        assert_eq!(error.kind(), JoinErrorKind::Shutdown, "{error}");
    }
    let now = lanes.cpu.handle().metrics();
    assert_eq!((now.submitted, now.dropped, now.panicked), (3, 3, 0));
    assert_eq!((now.running, now.suspended), (0, 0));

    assert_eq!(PANICS.load(SeqCst), 0);
}

/// To its reader it was a panic, of "a payload that is not text".
#[test]
fn a_stream_passes_a_shutdown_on_as_such() {
    let lanes = lanes(1);
    let inner = cpu_lane(1, lanes.io.handle());
    let part = inner.spawn(pending::<()>());
    let items = lanes
        .cpu
        .handle()
        .stream_from_cpu(stream::once(or_unwind(part)), 1, |()| 1);
    inner.shutdown_background();
    let error = block_on_stream(items).next().unwrap().unwrap_err();
    assert!(!error.is_panic(), "{error}");
    let text = error.to_string();
    assert!(text.contains("the CPU lane was shut down"), "{text}");
    let metrics = lanes.cpu.handle().metrics();
    assert_eq!(metrics.panicked, 0);
}

#[test]
fn a_cancel_and_a_panic_are_passed_on_as_such() {
    let lanes = lanes(1);
    let part = lanes.cpu.spawn(pending::<()>());
    part.abort();
    let cancelled = lanes.cpu.spawn(or_unwind(part)).wait().unwrap_err();
    assert!(cancelled.is_cancelled(), "{cancelled}");

    let part: Task<()> = lanes.cpu.spawn_cpu(|| panic::panic_any(7_u32));
    let error: JoinError = lanes.cpu.spawn(or_unwind(part)).wait().unwrap_err();
    assert_eq!(*error.into_panic().downcast::<u32>().unwrap(), 7);
}
