//! A lane without an I/O lane: all but I/O works, from any thread and under any executor, and what
//! needs I/O is told so.

use std::future::pending;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use futures::{StreamExt, TryStreamExt, stream};
use stallwatch::Watch;
use tokio::runtime::{Builder, Handle, Runtime};
use twolane_core::{CpuRuntime, JoinErrorKind, Priority};

use crate::support::{gives, limit_this_thread, nothing, time_limit};

static CPU: LazyLock<CpuRuntime> =
    LazyLock::new(|| CpuRuntime::builder().without_io().build().unwrap());

fn lane() -> CpuRuntime {
    limit_this_thread();
    let settings = CpuRuntime::builder().worker_threads(2);
    settings.without_io().build().unwrap()
}

/// What any caller may ask of the lane.
async fn use_all_but_io(cpu: &CpuRuntime) {
    let handle = cpu.handle();
    assert_eq!(cpu.spawn_cpu(gives(1)).await.unwrap(), 1);
    let (send, receive) = tokio::sync::oneshot::channel();
    let awaits = cpu.spawn(async { receive.await.unwrap() });
    let high = handle.with_priority(Priority::High);
    high.spawn_cpu(|| send.send(2)).await.unwrap().unwrap();
    assert_eq!(awaits.await.unwrap(), 2);
    let panics = cpu.spawn_cpu(|| panic!("planned")).await;
    assert!(panics.unwrap_err().is_panic());

    let late = handle.with_deadline(Instant::now()).spawn_cpu(nothing);
    assert_eq!(late.await.unwrap_err().kind(), JoinErrorKind::Expired);
    let never = cpu.spawn(pending::<()>()).within(Duration::from_millis(1));
    assert_eq!(never.await.unwrap_err().kind(), JoinErrorKind::Expired);

    let permit = handle.reserve().await.unwrap();
    assert_eq!(permit.spawn_cpu(gives(3)).await.unwrap(), 3);
    let numbers = handle.stream_from_cpu(stream::iter(0..100), 8, |_| 1);
    let numbers: Vec<_> = numbers.try_collect().await.unwrap();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
}

#[test]
fn a_static_lane_outlives_the_runtimes_that_use_it() {
    let _limit = time_limit();
    for _ in 0..3 {
        let runtime = Runtime::new().unwrap();
        runtime.block_on(use_all_but_io(&CPU));
        drop(runtime);
        let current = Builder::new_current_thread().build().unwrap();
        current.block_on(use_all_but_io(&CPU));
        block_on(use_all_but_io(&CPU));
        assert_eq!(CPU.spawn_cpu(gives(4)).wait().unwrap(), 4);
    }
}

#[test]
fn it_is_not_bound_to_the_runtime_around_it() {
    let runtime = Runtime::new().unwrap();
    let cpu = runtime.block_on(async { lane() });
    drop(runtime);
    let inside = cpu.spawn_cpu(|| Handle::try_current().is_err());
    assert!(inside.wait().unwrap());
    block_on(use_all_but_io(&cpu));
    cpu.shutdown().wait();
    let refused = cpu.spawn_cpu(nothing).wait().unwrap_err();
    assert_eq!(refused.kind(), JoinErrorKind::Shutdown);
}

#[test]
fn what_needs_the_io_lane_is_refused() {
    let cpu = lane();
    let io = cpu.handle().io();
    let from_job = cpu.spawn_cpu(|| twolane_core::spawn_io(async {}).wait());
    let from_job = from_job.wait().unwrap();
    let spawn_io = || cpu.handle().spawn_io(async {});
    for refused in [
        spawn_io().wait(),
        block_on(spawn_io().within(Duration::from_secs(60))),
        io.spawn(async {}).wait(),
        from_job,
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), JoinErrorKind::NoIoLane);
        assert!(error.to_string().contains("Builder::io_handle"), "{error}");
    }
    let mut bridged = cpu.handle().stream_from_io(stream::iter(0..3), 8, |_| 1);
    let error = block_on(bridged.next()).unwrap().unwrap_err().to_string();
    assert!(
        error.contains("never begun") && error.contains("without_io"),
        "{error}"
    );
    assert!(io.is_gone());
}

#[test]
#[should_panic(expected = "this CpuRuntime has no I/O lane")]
fn it_has_no_runtime_to_give() {
    lane().handle().io().runtime();
}

#[test]
fn there_is_nothing_to_watch() {
    let settings = CpuRuntime::builder().without_io().watch_io(Watch::new());
    let error = settings.build().unwrap_err().to_string();
    assert!(error.starts_with("Builder::watch_io: "), "{error}");
}

/// Tokio's channels and semaphores let the other jobs of the thread run, here too.
#[test]
fn its_futures_have_a_budget() {
    let _limit = time_limit();
    let settings = CpuRuntime::builder().worker_threads(1);
    let cpu = settings.without_io().build().unwrap();
    let always_ready = cpu.spawn(async {
        loop {
            tokio::task::coop::consume_budget().await;
        }
    });
    assert_eq!(cpu.spawn(async { 5 }).wait().unwrap(), 5);
    drop::<twolane_core::Task<()>>(always_ready);
    cpu.shutdown().wait();
}
