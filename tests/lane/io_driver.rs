//! `enable_driver_wakeups`: does every awaiter wake? (How many I/O workers the end of a job wakes is
//! counted in `tests/alone`.)

use std::future::Future;
use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use twolane::{Backend, CpuRuntime, Handle, JoinError};

use crate::support::wait::wait_until;
use crate::support::{Lanes, Stuck, lanes_with, time_limit, with_both};

const TRIPS: u64 = 20;

fn lanes(backend: Backend) -> Lanes {
    lanes_with(backend, 1, |builder| builder.enable_driver_wakeups())
}

fn io_runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

fn wait_until_all_are_parked(io: &Runtime) {
    let metrics = io.metrics();
    let is_parked = |worker| metrics.worker_park_unpark_count(worker) % 2 == 1;
    wait_until(|| (0..metrics.num_workers()).all(is_parked));
}

/// A job that runs until it is let go, and a task of `awaiting` that has begun to await it, while
/// all workers of `io` are parked.
fn awaited(
    cpu: &Handle,
    io: &Runtime,
    awaiting: &Runtime,
) -> (mpsc::Sender<()>, JoinHandle<Result<(), JoinError>>) {
    let (task, let_go) = Stuck::start(cpu).split();
    let (tell, is_awaited) = mpsc::channel();
    let awaits = awaiting.spawn(async move {
        let mut task = pin!(task);
        std::future::poll_fn(|cx| {
            let polled = task.as_mut().poll(cx);
            let _ = tell.send(());
            polled
        })
        .await
    });
    is_awaited.recv().unwrap();
    wait_until_all_are_parked(io);
    (let_go, awaits)
}

#[test]
fn awaiters_elsewhere_are_woken() {
    let other = io_runtime();
    with_both(|backend| {
        let Lanes { cpu, io } = lanes(backend);
        let cpu = cpu.handle();
        for _ in 0..TRIPS {
            let (let_go, awaits) = awaited(&cpu, &io, &other);
            let_go.send(()).unwrap();
            other.block_on(awaits).unwrap().unwrap();

            // By a waker that is no task's.
            let (task, let_go) = Stuck::<()>::start(&cpu).split();
            let mut task = pin!(task);
            let mut first = Context::from_waker(Waker::noop());
            assert!(task.as_mut().poll(&mut first).is_pending());
            wait_until_all_are_parked(&io);
            thread::scope(|scope| {
                let waits = scope.spawn(|| io.block_on(task));
                let_go.send(()).unwrap();
                waits.join().unwrap().unwrap();
            });
        }
    });
}

/// Whatever the relay does when its runtime shuts down.
#[test]
fn an_awaiter_on_another_runtime_outlives_the_io_runtime() {
    let other = io_runtime();
    with_both(|backend| {
        for turn in 0..TRIPS {
            let Lanes { cpu, io } = lanes(backend);
            let (let_go, awaits) = awaited(&cpu.handle(), &io, &other);
            let ends = thread::spawn(move || io.shutdown_background());
            for _ in 0..turn {
                thread::yield_now();
            }
            let_go.send(()).unwrap();
            // A lane whose I/O runtime is gone may have closed the job.
            let joined = other.block_on(awaits).unwrap();
            assert!(joined.is_ok() || joined.unwrap_err().is_shutdown());
            ends.join().unwrap();
        }
    });
}

#[test]
fn a_runtime_without_a_driver_is_an_error_with_its_remedy() {
    let _limit = time_limit();
    let io = Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let builder = || CpuRuntime::builder().io_handle(io.handle().clone());
    let error = builder().enable_driver_wakeups().build().unwrap_err();
    for part in ["Builder::enable_driver_wakeups", "enable_io"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    builder().build().unwrap();
}

/// Where one worker is all there is, there is no second one to spare, and nothing to ask for.
#[test]
fn one_worker_needs_no_driver() {
    let _limit = time_limit();
    let single = Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    let current = Builder::new_current_thread().build().unwrap();
    for io in [single, current] {
        let cpu = CpuRuntime::builder().io_handle(io.handle().clone());
        let cpu = cpu.enable_driver_wakeups().build().unwrap();
        assert_eq!(io.block_on(cpu.spawn_cpu(|| 1 + 1)).unwrap(), 2);
    }
}

/// While one worker blocks, none may be in the driver. (On the rayon backend the lane's thread would
/// come to wake what the relay has left; on the other there is no such net.)
#[test]
fn a_worker_that_blocks_holds_no_awaiter_up() {
    with_both(|backend| {
        let Lanes { cpu, io } = lanes(backend);
        let cpu = cpu.handle();
        let (let_go, awaits) = awaited(&cpu, &io, &io);
        let (woken, is_woken) = mpsc::channel();
        let awaits = io.spawn(async move {
            awaits.await.unwrap().unwrap();
            woken.send(()).unwrap();
        });
        let (end, wait) = mpsc::channel::<()>();
        let (tell, blocks) = mpsc::channel();
        // By a timer, for which it returns from the driver.
        let blocks_io = io.spawn(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            tell.send(()).unwrap();
            let _ = wait.recv();
        });
        blocks.recv().unwrap();
        let_go.send(()).unwrap();
        is_woken.recv().unwrap();
        drop(end);
        io.block_on(async {
            awaits.await.unwrap();
            blocks_io.await.unwrap();
        });
    });
}
