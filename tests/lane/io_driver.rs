//! Through the I/O runtime's driver: how many of its workers does the end of a job wake, and does
//! every awaiter wake?

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use twolane::{Backend, CpuRuntime};

use crate::support::wait::wait_until;
use crate::support::{Stuck, cpu_lane, lanes, time_limit};

const TRIPS: u64 = 20;

fn io_runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap()
}

fn wait_until_all_are_parked(io: &Runtime) {
    let metrics = io.metrics();
    let is_parked = |worker| metrics.worker_park_unpark_count(worker) % 2 == 1;
    wait_until(|| (0..metrics.num_workers()).all(is_parked));
}

fn unparks(io: &Runtime) -> u64 {
    let metrics = io.metrics();
    let of = |worker| metrics.worker_park_unpark_count(worker) / 2;
    (0..metrics.num_workers()).map(of).sum()
}

#[test]
fn a_job_that_ends_wakes_one_worker() {
    let _limit = time_limit();
    let io = io_runtime();
    let cpu = cpu_lane(Backend::Rayon, 1, io.handle());
    let (tell, jobs) = mpsc::channel();
    let handle = cpu.handle();
    let awaits = io.spawn(async move {
        for _ in 0..TRIPS {
            let (task, let_go) = Stuck::start(&handle).split();
            tell.send(let_go).unwrap();
            task.await.unwrap();
        }
    });
    for let_go in jobs {
        wait_until_all_are_parked(&io);
        let_go.send(()).unwrap();
    }
    io.block_on(awaits).unwrap();
    wait_until_all_are_parked(&io);
    let woken = unparks(&io);
    // A wake-up from a foreign thread unparks two.
    assert!(
        (TRIPS..TRIPS * 3 / 2).contains(&woken),
        "{TRIPS} jobs woke {woken} workers"
    );
}

/// What wakes them is no task of the I/O runtime, or of another one.
#[test]
fn awaiters_elsewhere_are_woken() {
    let _limit = time_limit();
    let lanes = lanes(Backend::Rayon, 1);
    let other = io_runtime();
    for _ in 0..TRIPS {
        let stuck = || {
            let (task, let_go) = Stuck::<()>::start(&lanes.cpu.handle()).split();
            wait_until_all_are_parked(&lanes.io);
            (task, let_go)
        };
        let (task, let_go) = stuck();
        let waits = thread::spawn(move || task.wait());
        let_go.send(()).unwrap();
        waits.join().unwrap().unwrap();

        let (task, let_go) = stuck();
        let awaits = other.spawn(task);
        let_go.send(()).unwrap();
        other.block_on(awaits).unwrap().unwrap();

        let (task, let_go) = stuck();
        let_go.send(()).unwrap();
        lanes.io.block_on(task).unwrap();
    }
}

/// The relay ends with its runtime, at any moment of a job's end.
#[test]
fn an_awaiter_on_another_runtime_outlives_the_io_runtime() {
    let _limit = time_limit();
    let other = io_runtime();
    for _ in 0..TRIPS {
        let io = io_runtime();
        let cpu = cpu_lane(Backend::Rayon, 1, io.handle());
        let (task, let_go) = Stuck::<()>::start(&cpu.handle()).split();
        let awaits = other.spawn(task);
        let_go.send(()).unwrap();
        io.shutdown_background();
        other.block_on(awaits).unwrap().unwrap();
    }
}

#[test]
fn a_runtime_without_a_driver_is_an_error_with_its_remedy() {
    let _limit = time_limit();
    let io = Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let builder = || CpuRuntime::builder().io_handle(io.handle().clone());
    let error = builder().build().unwrap_err().to_string();
    for remedy in ["enable_io", "Builder::without_io_driver"] {
        assert!(error.contains(remedy), "{error}");
    }
    let cpu = builder().without_io_driver().build().unwrap();
    let sum = io.block_on(io.spawn(cpu.spawn_cpu(|| 1 + 1)));
    assert_eq!(sum.unwrap().unwrap(), 2);
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
        let cpu = cpu.build().unwrap();
        assert_eq!(io.block_on(cpu.spawn_cpu(|| 1 + 1)).unwrap(), 2);
    }
}

/// A worker that blocks after it has returned from the driver leaves no worker in the driver.
#[test]
fn a_worker_that_blocks_holds_no_awaiter_up() {
    let _limit = time_limit();
    let lanes = lanes(Backend::Rayon, 1);
    let (task, let_go) = Stuck::<()>::start(&lanes.cpu.handle()).split();
    let awaits = lanes.io.spawn(task);
    wait_until_all_are_parked(&lanes.io);
    let (end, wait) = mpsc::channel::<()>();
    let (tell, blocks) = mpsc::channel();
    // By a timer, which the driver returns for.
    let blocks_io = lanes.io.spawn(async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        tell.send(()).unwrap();
        let _ = wait.recv();
    });
    blocks.recv().unwrap();
    let_go.send(()).unwrap();
    lanes.io.block_on(awaits).unwrap().unwrap();
    drop(end);
    lanes.io.block_on(blocks_io).unwrap();
}
