//! What if the I/O lane is not there (yet, or any more)? And which lanes does
//! a free function mean?

use crate::support::turns::current_thread;
use crate::support::{Lanes, cpu_lane, gives, lanes, lanes_with, lasts, thread_name};
use futures::FutureExt;
use futures::executor::block_on;
use twolane_core::{Builder, CpuRuntime, Handle, JoinErrorKind, Priority};

/// A `current_thread` runtime outside its `block_on` does nothing: what is
/// given to it must wait rather than be lost.
#[test]
fn a_runtime_that_is_not_driven_loses_nothing() {
    let io = current_thread();
    let cpu = cpu_lane(1, io.handle());
    let task = cpu.handle().spawn_io(async { thread_name() });
    // The CPU lane works all the same.
    assert_eq!(cpu.spawn_cpu(gives(1)).wait().unwrap(), 1);
    assert!(!task.is_finished());

    assert_eq!(io.block_on(task).unwrap(), thread_name());
}

fn tells_the_remedy(error: &twolane_core::JoinError) {
    assert_eq!(error.kind(), JoinErrorKind::IoRuntimeGone, "{error}");
    let text = error.to_string();
    assert!(text.contains("build a CpuRuntime on the runtime that is there now"));
    assert!(text.contains("one per #[tokio::test]"));
}

/// A process default that belongs to the first `#[tokio::test]` outlives its
/// I/O runtime. Every call must say what happened and what to do; none may
/// hang, or run half of a job.
#[test]
fn without_its_io_runtime_every_call_names_the_remedy() {
    let Lanes { cpu, io } = lanes(1);
    let gone = io.handle().clone();
    drop(io);
    assert!(cpu.handle().io().is_gone());
    tells_the_remedy(&cpu.spawn_cpu(gives(1)).wait().unwrap_err());
    tells_the_remedy(&cpu.spawn(async { 1 }).wait().unwrap_err());
    tells_the_remedy(&cpu.handle().spawn_io(async { 1 }).wait().unwrap_err());
    let built = CpuRuntime::builder().io_handle(gone).build();
    let error = built.unwrap_err().to_string();
    assert!(error.contains("has been shut down"), "{error}");
    assert!(cpu.shutdown().wait().is_empty());
}

/// `closed` never came, and a `reserve` that waited went on waiting.
#[test]
fn the_end_of_the_io_runtime_closes_the_lane() {
    let limit = |lane: Builder| lane.queue_limit(Priority::Normal, 1);
    let Lanes { cpu, io } = lanes_with(1, limit);
    let handle = cpu.handle().clone();
    let _held = handle.try_reserve().unwrap();
    let mut reserve = handle.reserve();
    assert!((&mut reserve).now_or_never().is_none());
    drop(io);
    block_on(handle.closed());
    tells_the_remedy(&block_on(reserve).unwrap_err());
    assert!(cpu.shutdown().wait().is_empty());
}

/// The I/O runtime ends while jobs wait for it: their awaits must end too.
#[test]
fn what_waits_for_the_io_lane_is_told_when_it_ends() {
    let Lanes { cpu, io } = lanes(2);
    let [(outside, first), (inside, second)] = [(); 2].map(lasts);
    let outside = cpu.handle().spawn_io(outside);
    let inside = cpu.spawn(async { twolane_core::spawn_io(inside).await });
    first.recv().unwrap();
    second.recv().unwrap();

    drop(io);
    tells_the_remedy(&outside.wait().unwrap_err());
    // By its own error, or by that of what it awaits.
    tells_the_remedy(&inside.wait().and_then(|ended| ended).unwrap_err());
}

/// The smallest machine: one CPU thread, and an I/O lane that is the thread which
/// calls `block_on`. Any wait of one lane for the other shows as a hang.
#[test]
fn one_thread_on_each_side_is_enough() {
    let io = current_thread();
    io.block_on(async {
        let cpu = cpu_lane(1, &tokio::runtime::Handle::current());
        let nested = cpu.spawn(async {
            let closure = twolane_core::spawn_cpu(thread_name).await.unwrap();
            let future = Handle::current().spawn(async { thread_name() });
            let io = twolane_core::spawn_io(async { thread_name() }).await;
            [closure, future.await.unwrap(), io.unwrap()]
        });
        let (cpu_0, main) = ("cpu-0".to_owned(), thread_name());
        let threads = nested.await.unwrap();
        assert_eq!(threads, [cpu_0.clone(), cpu_0, main]);
        let waiting = cpu.spawn_cpu(|| twolane_core::spawn_io(async { 7 }).wait().unwrap());
        assert_eq!(waiting.await.unwrap(), 7);
        assert!(cpu.shutdown().await.is_empty());
    });
}
