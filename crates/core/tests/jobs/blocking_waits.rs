//! Which thread may block on which job? The table at `Task::wait`.

use std::panic;
use std::sync::mpsc;
use std::time::Duration;

use crate::support::wait::wait_until;
use crate::support::{self, Lanes, Stuck, gives, lanes, nothing, thread_name};
use twolane_core::{CpuRuntime, Handle, JoinError, Priority};

const NEVER: Duration = Duration::from_secs(3_600);

/// A panic's text, of a job that had to panic.
fn refusal<T>(outcome: Result<T, JoinError>) -> String {
    match outcome {
        Err(error) if error.is_panic() => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was not refused"),
    }
}

/// All that an I/O worker serves would wait, and nothing would tell.
#[test]
fn async_code_on_the_io_lane_may_not_wait() {
    let Lanes { cpu, io } = lanes(1);
    let stuck = Stuck::start(cpu.handle());
    let handle = cpu.handle().clone();
    let wait = move || handle.spawn_cpu(gives(1)).wait();
    let waits = wait.clone();
    let task = io.block_on(io.spawn(async move { waits() })).unwrap_err();
    let text = task.into_panic();
    let text = text.downcast::<String>().unwrap();
    assert!(text.contains("from within a runtime"), "{text}");
    let future = cpu.handle().io().spawn(async move { wait() });
    assert!(refusal(future.wait()).contains("from within a runtime"));
    stuck.end();
    // What has ended is no wait; and another thread may take over.
    let done = cpu.spawn_cpu(gives(2));
    wait_until(|| done.is_finished());
    assert_eq!(io.block_on(async { done.wait() }).unwrap(), 2);
    let handle = cpu.handle().clone();
    let in_place = move || tokio::task::block_in_place(|| handle.spawn_cpu(gives(3)).wait());
    let in_place = io.spawn(async move { in_place() });
    assert_eq!(io.block_on(in_place).unwrap().unwrap(), 3);
}

/// As `Task::wait`. They blocked the worker, in silence: a `shutdown().wait()` in an async `main`
/// of one thread never ended while a closure waited for `spawn_io`.
#[test]
fn nor_may_it_wait_for_a_place_a_shutdown_or_an_installed_closure() {
    let Lanes { cpu, io } =
        support::lanes_with(1, |builder| builder.queue_limit(Priority::Normal, 1));
    let handle = cpu.handle().clone();
    let stuck = Stuck::<()>::start(&handle);
    let in_async = |wait: fn(&CpuRuntime, &Handle)| {
        let blocks = panic::AssertUnwindSafe(|| io.block_on(async { wait(&cpu, &handle) }));
        panic::catch_unwind(blocks).map_err(|text| *text.downcast::<String>().unwrap())
    };
    let place = in_async(|_, handle| drop(handle.reserve().wait()));
    assert!(place.unwrap_err().contains("from within a runtime"));
    let installed = in_async(|_, handle| handle.install(|| ()).unwrap());
    assert!(installed.unwrap_err().contains("from within a runtime"));

    let limited = in_async(|cpu, _| _ = cpu.shutdown_timeout(NEVER).wait());
    assert!(limited.unwrap_err().contains("from within a runtime"));
    let shutdown = in_async(|cpu, _| _ = cpu.shutdown().wait());
    assert!(shutdown.unwrap_err().contains("from within a runtime"));
    // It has closed the lane all the same, and what does not wait is no wait.
    in_async(|_, handle| assert!(handle.reserve().wait().is_err())).unwrap();
    drop(stuck.split());
    assert!(cpu.shutdown().wait().is_empty());
    in_async(|cpu, _| assert!(cpu.shutdown().wait().is_empty())).unwrap();
}

/// The others of the table, all on one CPU thread: where a thread may wait for a task, it may wait for
/// these. (A thread of the lane does not wait for a place: what its job submits goes in by the job's
/// own, which is the only one here.)
#[test]
fn who_may_wait_for_a_task_may_wait_for_a_place_a_shutdown_and_an_installed_closure() {
    let Lanes { cpu, io } =
        support::lanes_with(1, |builder| builder.queue_limit(Priority::Normal, 1));
    let handle = cpu.handle().clone();
    let waits = move |handle: &Handle| {
        let place = handle.reserve().wait().unwrap();
        let installed = handle.install(|| 1).unwrap();
        place.spawn_cpu(gives(installed))
    };
    let plain = handle.clone();
    let plain = std::thread::spawn(move || waits(&plain).wait());
    assert_eq!(plain.join().unwrap().unwrap(), 1);
    let of_pool = handle.clone();
    let of_pool = io.spawn_blocking(move || waits(&of_pool).wait());
    assert_eq!(io.block_on(of_pool).unwrap().unwrap(), 1);
    let in_place = handle.clone();
    let in_place = async move { tokio::task::block_in_place(|| waits(&in_place).wait()) };
    assert_eq!(io.block_on(io.spawn(in_place)).unwrap().unwrap(), 1);
    // A thread of another lane is like any other.
    let other = lanes(1);
    let of_other = handle.clone();
    let of_other = other.cpu.spawn_cpu(move || waits(&of_other).wait());
    assert_eq!(of_other.wait().unwrap().unwrap(), 1);
    // A thread of the lane, in a closure and in a future; the last one shuts another lane down.
    let own = cpu.spawn_cpu(move || waits(&Handle::current()));
    assert_eq!(own.wait().unwrap().wait().unwrap(), 1);
    let own = cpu.spawn(async move { waits(&Handle::current()).await });
    assert_eq!(own.wait().unwrap().unwrap(), 1);
    let own = cpu.spawn(async move { other.cpu.shutdown().wait().is_empty() });
    assert!(own.wait().unwrap());
}

/// While the only CPU thread waits, the I/O lane works.
#[test]
fn a_closure_may_wait_for_the_io_lane() {
    let lanes = lanes(1);
    let listening = async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        listener.local_addr()
    };
    let job = lanes
        .cpu
        .spawn_cpu(|| twolane_core::spawn_io(listening).wait().unwrap());
    assert!(job.wait().unwrap().unwrap().port() > 0);
    let job = lanes.cpu.spawn_cpu(|| {
        let cpu = Handle::current();
        let wait = |n: u32| cpu.spawn_io(async move { n }).wait().unwrap();
        rayon::join(|| wait(1), || wait(2))
    });
    assert_eq!(job.wait().unwrap(), (1, 2));
    let installed = lanes
        .cpu
        .handle()
        .install(|| twolane_core::spawn_io(async { 3 }).wait());
    assert_eq!(installed.unwrap().unwrap(), 3);
    // It may drive a runtime of Tokio's itself.
    let io = lanes.io.handle().clone();
    let drives = lanes.cpu.spawn_cpu(move || io.block_on(async { 4 }));
    assert_eq!(drives.wait().unwrap(), 4);
}

#[test]
fn a_thread_of_the_lane_may_not_wait_for_it() {
    let lanes = lanes(1);
    let cpu = &lanes.cpu;
    let wait = || Handle::current().spawn_cpu(nothing).wait();
    let closure = refusal(cpu.spawn_cpu(wait).wait());
    let future = refusal(cpu.spawn(async move { wait() }).wait());
    let urgent = cpu.handle().with_priority(Priority::High);
    // Else it may have ended before it is waited for.
    let stuck = Stuck::start(&urgent);
    let other_priority = refusal(
        cpu.spawn_cpu(move || urgent.spawn_cpu(nothing).wait())
            .wait(),
    );
    for text in [closure, future, other_priority] {
        assert!(text.contains("it would wait for itself"), "{text}");
        assert!(text.contains("Await the task"), "{text}");
    }
    stuck.end();
    let child = cpu.spawn_cpu(move || rayon::join(wait, || ()).0);
    assert!(refusal(child.wait()).contains("it would wait for itself"));
    let installed = cpu.handle().install(wait);
    assert!(refusal(installed).contains("it would wait for itself"));

    // What has ended is no wait, and all this has cost no thread.
    let (tell, told) = mpsc::channel();
    let done = cpu.spawn_cpu(move || tell.send(()).unwrap());
    told.recv().unwrap();
    wait_until(|| done.is_finished());
    cpu.spawn_cpu(move || done.wait()).wait().unwrap().unwrap();
}

/// A thread of a blocking pool is no worker of the lane, also if the pool is that of the lane's own
/// runtime.
#[test]
fn a_blocking_thread_may_wait_for_the_lane() {
    let (handle, lanes) = lanes(1).and_handle();
    let waits = || {
        let handle = handle.clone();
        async move {
            let wait = move || (handle.spawn_cpu(gives(5)).wait().unwrap(), thread_name());
            tokio::task::spawn_blocking(wait).await.unwrap()
        }
    };
    let (output, thread) = lanes.cpu.spawn(waits()).wait().unwrap();
    assert_eq!((output, &*thread), (5, "io"));
    let waits = lanes.cpu.spawn(twolane_core::in_cpu_context(waits()));
    let (output, thread) = waits.wait().unwrap();
    assert!(output == 5 && thread.starts_with("cpu-"), "{thread}");
}
