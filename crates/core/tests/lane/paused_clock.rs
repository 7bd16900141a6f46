//! Does a paused clock of Tokio's wait for the CPU lane?

use std::sync::mpsc;

use crate::paused::{SECOND, compute, lane, stands};
use crate::support::{gives, nothing, time_limit};
use tokio::time::{Instant, sleep, timeout};
use twolane_core::CpuRuntime;

/// The clock is that of another runtime than the I/O lane.
#[test]
fn the_clock_stands_until_the_awaiter_is_woken() {
    let _limit = time_limit();
    let io = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let paused = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let settings = CpuRuntime::builder().worker_threads(1);
    let settings = settings.hold_paused_clock(true);
    let cpu = settings.io_handle(io.handle().clone()).build().unwrap();
    paused.block_on(async {
        for _ in 0..100 {
            let task = stands(cpu.spawn_cpu(compute));
            tokio::spawn(task).await.unwrap().unwrap();
        }
    });
}

#[tokio::test(start_paused = true)]
async fn a_timeout_does_not_fire_while_the_job_runs() {
    let cpu = lane();
    // The second waits in the queue meanwhile. A future holds the clock while it computes, as a
    // closure does.
    let [first, second] = [(); 2].map(|()| cpu.spawn_cpu(compute));
    let [third, fourth] = [(); 2].map(|()| {
        cpu.spawn(async {
            for _ in 0..4 {
                compute();
                twolane_core::yield_now().await;
            }
        })
    });
    for task in [first, second, third, fourth] {
        stands(task).await.unwrap();
    }
}

/// What happens without: the test above is not met by chance.
#[tokio::test(start_paused = true)]
async fn without_it_the_clock_runs_ahead() {
    let _limit = time_limit();
    let cpu = CpuRuntime::builder().worker_threads(1).build().unwrap();
    let (let_go, wait) = mpsc::channel::<()>();
    let job = cpu.spawn_cpu(move || wait.recv());
    assert!(timeout(SECOND, job).await.is_err());
    drop(let_go);
}

/// A future that waits for the clock would wait for itself: it holds nothing meanwhile.
#[tokio::test(start_paused = true)]
async fn a_future_lets_the_clock_go() {
    let cpu = lane();
    let start = Instant::now();
    let handle = cpu.handle().clone();
    let sleeper = cpu.spawn(async move {
        compute();
        let sleeps = handle.spawn_io(async { sleep(SECOND).await });
        sleeps.await.unwrap();
        compute();
    });
    // There is no other timer that the clock may run to.
    sleeper.await.unwrap();
    assert_eq!(start.elapsed(), SECOND);
    // Nor does a closure that has ended and was not awaited.
    let unread = cpu.spawn_cpu(gives(42));
    sleep(SECOND).await;
    assert_eq!(unread.await.unwrap(), 42);
}

/// Its own clock it holds where it is submitted by a job, too.
#[tokio::test(start_paused = true)]
async fn a_nested_job_holds_the_clock() {
    let cpu = lane();
    let handle = cpu.handle().clone();
    let outer = cpu.spawn_cpu(move || handle.spawn_cpu(compute));
    let inner = stands(outer).await.unwrap();
    stands(inner).await.unwrap();
}

/// Jobs that end without an output let the clock go as well. Also a closure that is cancelled as it
/// runs, if its task, which has told its end, is kept.
#[tokio::test(start_paused = true)]
async fn so_does_a_job_that_was_cancelled() {
    let cpu = lane();
    let (started, running) = tokio::sync::oneshot::channel();
    let mut task = cpu.handle().spawn_cpu_with(move |job| {
        started.send(()).unwrap();
        while job.checkpoint().is_ok() {
            std::thread::yield_now();
        }
        Ok(())
    });
    running.await.unwrap();
    task.abort();
    (&mut task).await.unwrap();
    sleep(SECOND).await;
    assert!(task.is_finished());

    let (let_go, wait) = mpsc::channel::<()>();
    let running = cpu.spawn_cpu(move || wait.recv());
    drop(cpu.spawn_cpu(nothing));
    let cancelled = cpu.spawn(async {});
    cancelled.abort();
    assert!(cancelled.await.unwrap_err().is_cancelled());
    let suspended = cpu.spawn(std::future::pending::<()>());
    drop(let_go);
    assert!(running.await.unwrap().is_err());
    drop(suspended);
    sleep(SECOND).await;
    let panicked = cpu.spawn_cpu(|| panic!("planned")).await;
    assert!(panicked.unwrap_err().is_panic());
    sleep(SECOND).await;
}
