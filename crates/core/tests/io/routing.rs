//! Where does it run? What is given to the I/O lane runs there, from whatever thread
//! it comes; and what a job starts plainly runs there, too.

use std::future::pending;
use std::sync::mpsc;
use std::time::Duration;

use crate::support::{self, Dropped, Lanes, lanes, lasts, thread_name};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use twolane_core::{Handle, in_cpu_context};

/// The threads of its first poll, and of one after a wait.
async fn polled_on() -> [String; 2] {
    let first = thread_name();
    tokio::task::yield_now().await;
    [first, thread_name()]
}

/// A request that is polled by the thread that asked for it stalls whenever
/// that thread computes: `spawn_io` must move it, from any caller.
#[test]
fn spawn_io_moves_its_future_from_wherever_it_is_called() {
    let Lanes { cpu, io: _io } = lanes(2);
    let on_io = ["io", "io"];

    let future = cpu.spawn(async { twolane_core::spawn_io(polled_on()).await.unwrap() });
    assert_eq!(future.wait().unwrap(), on_io, "a future");

    let nested = cpu.spawn(async {
        let nested = twolane_core::spawn_io(async { twolane_core::spawn_io(polled_on()).await });
        Handle::current().spawn(nested).await.unwrap()
    });
    let nested = nested.wait().unwrap().unwrap().unwrap();
    assert_eq!(nested, on_io, "I/O of I/O of a nested job");

    let closure = cpu.spawn_cpu(|| twolane_core::spawn_io(polled_on()).wait().unwrap());
    assert_eq!(closure.wait().unwrap(), on_io, "a closure");

    let handle = cpu.handle().clone();
    let children = cpu.spawn_cpu(move || {
        let child = || handle.spawn_io(polled_on()).wait().unwrap();
        rayon::join(child, child)
    });
    let (left, right) = children.wait().unwrap();
    assert_eq!([left, right], [on_io, on_io], "rayon children");

    let handle = cpu.handle().clone();
    let plain = std::thread::spawn(move || handle.spawn_io(polled_on()).wait().unwrap());
    assert_eq!(plain.join().unwrap(), on_io, "a plain thread");
}

/// What holds a socket must be let go where the socket lives, and soon: not
/// when a busy lane comes round to it.
#[test]
fn dropping_the_task_aborts_its_future_on_the_io_lane() {
    let Lanes { cpu, io: _io } = lanes(1);
    let (dropped, dropped_on) = mpsc::channel();
    let handle = cpu.handle().clone();
    let job = cpu.spawn_cpu(move || {
        let (lasts, polled) = lasts(Dropped(dropped));
        let task = handle.spawn_io(lasts);
        polled.recv().unwrap();
        drop(task);
        // The job's thread is taken until then.
        dropped_on.recv().unwrap()
    });
    assert_eq!(job.wait().unwrap(), "io");
}

/// The safety net: whatever looks for "the" Tokio runtime inside a job finds the I/O
/// lane, as `tokio::spawn` does. That has a price: what computes there delays I/O.
/// Rayon's children are inside it, too, on whatever worker.
#[test]
fn a_job_and_its_rayon_children_are_inside_the_io_runtime_s_context() {
    let here = || tokio::runtime::Handle::current().id();
    let Lanes { cpu, io } = lanes(2);
    let there = io.handle().id();
    assert_eq!(cpu.spawn_cpu(here).wait().unwrap(), there);
    let future = cpu.spawn(async move {
        let first = here();
        tokio::task::yield_now().await;
        [first, here()]
    });
    assert_eq!(future.wait().unwrap(), [there; 2]);
    let job = cpu.spawn_cpu(move || {
        let both_have_begun = std::sync::Barrier::new(2);
        let child = || {
            // So that one of the two is on the other worker.
            both_have_begun.wait();
            (thread_name(), here())
        };
        rayon::join(child, child)
    });
    let (left, right) = job.wait().unwrap();
    assert_ne!(left.0, right.0);
    assert_eq!([left.1, right.1], [there; 2]);
}

/// A socket that a job opens without any thought must not be registered with
/// a runtime that no thread drives, or that ends with the CPU lane.
#[test]
fn a_socket_of_a_job_belongs_to_the_io_lane() {
    let Lanes { cpu, io } = lanes(1);
    let job = cpu.spawn(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let connects = TcpStream::connect(listener.local_addr().unwrap());
        let (near, far) = tokio::join!(connects, listener.accept());
        (near.unwrap(), far.unwrap().0)
    });
    let (mut near, mut far) = job.wait().unwrap();
    cpu.shutdown().wait();
    io.block_on(async {
        let mut read = [0; 4];
        let (written, got) = tokio::join!(far.write_all(b"ping"), near.read_exact(&mut read));
        written.and(got.map(drop)).unwrap();
        assert_eq!(&read, b"ping");
    });
}

/// Timers are common in code that does no I/O (a retry's back-off): they work
/// on both. Where they did not, a single 503 of an object store panicked.
#[test]
fn timers_work_in_jobs() {
    let Lanes { cpu, io: _io } = lanes(1);
    let job = cpu.spawn(async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let nothing = tokio::time::timeout(Duration::from_millis(1), pending::<()>()).await;
        (nothing.is_err(), thread_name())
    });
    let (timed_out, thread) = job.wait().unwrap();
    assert!(timed_out && thread.starts_with("cpu-"));
}

/// An I/O lane without timers has none for jobs either.
#[test]
fn a_timer_of_a_job_is_the_io_lane_s() {
    let io = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    let sleep = || async { tokio::time::sleep(Duration::from_millis(1)).await };
    let cpu = support::cpu_lane(1, io.handle());
    let error = cpu.spawn(sleep()).wait().unwrap_err();
    assert!(error.is_panic(), "{error}");
    assert!(error.to_string().contains("enable_time"), "{error}");
    cpu.spawn(in_cpu_context(sleep())).wait().unwrap();
}
