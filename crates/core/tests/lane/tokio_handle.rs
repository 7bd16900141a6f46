//! The lane's own Tokio handle, as a library uses it: what is spawned with it, without a job.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Lanes, Stuck, gives, lanes, lanes_with, thread_name, wait::wait_until};
use twolane_core::{CpuRuntime, Handle, JoinErrorKind, Priority, in_cpu_context};

fn tokio_of(cpu: &Handle) -> tokio::runtime::Handle {
    cpu.tokio_handle().unwrap()
}

#[test]
fn its_tasks_compute_on_the_threads_of_their_priority_and_find_the_lane() {
    let lanes = lanes(1);
    for (priority, name) in [
        (Priority::High, "cpu-high-tokio-0"),
        (Priority::Normal, "cpu-tokio-0"),
        (Priority::Low, "cpu-low-tokio-0"),
    ] {
        let cpu = lanes.cpu.handle().with_priority(priority);
        let task = tokio_of(&cpu).spawn(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let on_io = twolane_core::spawn_io(async { thread_name() }).await;
            let blocking = tokio::task::spawn_blocking(thread_name).await;
            let current = Handle::current().priority();
            (thread_name(), current, on_io.unwrap(), blocking.unwrap())
        });
        let (own, current, on_io, blocking) = lanes.io.block_on(task).unwrap();
        assert_eq!((own.as_str(), current), (name, priority));
        assert_eq!(on_io, "io");
        assert!(blocking.starts_with("cpu"), "{blocking}");
    }
}

/// An engine that does its I/O where it computes.
#[test]
fn with_an_io_driver_sockets_work_there() {
    let Lanes { cpu, io } = lanes_with(1, |lane| lane.tokio_runtime(|it| _ = it.enable_io()));
    let echo = || async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answers = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            socket.write_all(thread_name().as_bytes()).await.unwrap();
        });
        let mut text = String::new();
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.read_to_string(&mut text).await.unwrap();
        answers.await.unwrap();
        [text, thread_name()]
    };
    let on_lane = ["cpu-tokio-0"; 2];
    let task = tokio_of(cpu.handle()).spawn(echo());
    assert_eq!(io.block_on(task).unwrap(), on_lane);
    let [server, job] = cpu.spawn(in_cpu_context(echo())).wait().unwrap();
    assert!(server == on_lane[0] && job.starts_with("cpu-"), "{job}");
    // A plain job has the I/O lane's sockets still.
    let [server, job] = cpu.spawn(echo()).wait().unwrap();
    assert_eq!((&*server, &*job), ("io", "cpu-0"));
    assert!(cpu.shutdown().wait().is_empty());
}

#[test]
fn its_blocking_threads_can_be_limited_and_what_is_the_lanes_is_set_by_the_lane() {
    let set = |tokio: &mut tokio::runtime::Builder| {
        tokio.max_blocking_threads(1).worker_threads(7);
        tokio
            .thread_name("other")
            .on_thread_start(|| panic!("not this one"));
    };
    let Lanes { cpu, io } = lanes_with(1, |lane| lane.tokio_runtime(set));
    let tokio = tokio_of(cpu.handle());
    assert_eq!(tokio.metrics().num_workers(), 1);
    let (let_go, wait) = mpsc::channel::<()>();
    let (begins, begun) = mpsc::channel();
    let held = tokio.spawn_blocking(move || {
        begins.send(thread_name()).unwrap();
        let _ = wait.recv();
    });
    let first = begun.recv().unwrap();
    let others: Vec<_> = (0..20).map(|_| tokio.spawn_blocking(thread_name)).collect();
    drop(let_go);
    io.block_on(held).unwrap();
    for other in others {
        assert_eq!(io.block_on(other).unwrap(), first);
    }
    assert!(first.starts_with("cpu-tokio-"), "{first}");
}

#[test]
fn its_tasks_are_counted() {
    let (cpu, lanes) = lanes(2).and_handle();
    let (let_go, wait) = tokio::sync::oneshot::channel::<()>();
    let task = tokio_of(&cpu).spawn(wait);
    assert_eq!(cpu.metrics().tokio_tasks, 1);
    let shown = cpu.metrics().to_string();
    assert!(shown.ends_with("suspended 0, tokio_tasks 1"), "{shown}");
    let of_low = cpu.with_priority(Priority::Low).metrics();
    assert_eq!(of_low.tokio_tasks, 0);
    assert!(of_low.to_string().ends_with("suspended 0"));
    // A job is not one of them.
    let stuck = Stuck::start(&cpu);
    assert_eq!((cpu.metrics().tokio_tasks, cpu.metrics().running), (1, 1));
    stuck.end();
    let_go.send(()).unwrap();
    lanes.io.block_on(task).unwrap().unwrap();
    wait_until(|| cpu.metrics().tokio_tasks == 0);
}

#[test]
fn a_shutdown_drops_its_tasks_and_counts_those_that_compute() {
    let (cpu, lanes) = lanes(1).and_handle();
    let tokio = tokio_of(&cpu);
    let waits = tokio.spawn(std::future::pending::<()>());
    let (let_go, wait) = mpsc::channel::<()>();
    let (begins, began) = mpsc::channel();
    let computes = tokio.spawn(async move {
        begins.send(()).unwrap();
        wait.recv().unwrap();
        std::future::pending::<()>().await;
    });
    began.recv().unwrap();
    // The one that computes, and the one that its worker has not dropped yet.
    let left = lanes.cpu.shutdown_timeout(Duration::ZERO).wait();
    assert_eq!((left.jobs, left.tokio_tasks), (0, 2));
    assert!(left.threads > 0);
    let_go.send(()).unwrap();
    for task in [waits, computes, tokio.spawn(async {})] {
        assert!(lanes.io.block_on(task).unwrap_err().is_cancelled());
    }
    assert_eq!(tokio.metrics().num_alive_tasks(), 0);
    let refused = cpu.tokio_handle().unwrap_err();
    assert_eq!(refused.kind(), JoinErrorKind::Shutdown);
}

/// The lane ends its runtime after its jobs, on a thread of its own. The pages said that new tasks are
/// dropped at once, where 35 of 50 ran to their end.
#[test]
fn a_task_that_is_spawned_beside_a_shutdown_runs_once_or_never_and_none_does_after_it() {
    let lanes = lanes(2);
    let tokio = tokio_of(lanes.cpu.handle());
    let runs = Arc::new(AtomicUsize::new(0));
    let spawn = || {
        let runs = runs.clone();
        tokio.spawn(async move { runs.fetch_add(1, SeqCst) })
    };
    lanes.cpu.shutdown_background();
    let beside: Vec<_> = (0..50).map(|_| spawn()).collect();
    assert!(lanes.cpu.shutdown().wait().is_empty());
    let mut ran = 0;
    for task in beside {
        match lanes.io.block_on(task) {
            Ok(_) => ran += 1,
            Err(error) => assert!(error.is_cancelled()),
        }
    }
    let after: Vec<_> = (0..50).map(|_| spawn()).collect();
    for task in after {
        assert!(lanes.io.block_on(task).unwrap_err().is_cancelled());
    }
    assert_eq!(runs.load(SeqCst), ran);
}

/// It took this lane's own runtime for its I/O lane, and a socket there panicked. Also where the
/// current handle is of another priority, whose runtime it is.
#[test]
fn a_lane_that_is_built_there_has_this_lanes_io_lane() {
    let lanes = lanes(1);
    let build = || CpuRuntime::builder().worker_threads(1).build().unwrap();
    let task = tokio_of(lanes.cpu.handle()).spawn(async move { build() });
    let low = lanes.cpu.handle().with_priority(Priority::Low);
    let of_low = lanes.cpu.spawn_cpu(move || {
        let _low = low.enter();
        futures::executor::block_on(in_cpu_context(async { build() }))
    });
    for inner in [lanes.io.block_on(task).unwrap(), of_low.wait().unwrap()] {
        assert_eq!(inner.handle().io().runtime().id(), lanes.io.handle().id());
    }
}

/// Its thread is one that the shutdown waits for.
#[test]
fn a_task_there_may_not_wait_for_the_shutdown() {
    let Lanes { cpu, io } = lanes(1);
    let tokio = tokio_of(cpu.handle());
    let waits = move || cpu.shutdown().wait();
    for task in [
        tokio.spawn(async { tokio::task::block_in_place(waits) }),
        tokio.spawn_blocking(|| unreachable!("the lane is closed")),
    ] {
        let _ = io.block_on(task).unwrap_err();
    }
}

/// The lane's own thread calls it, while others wait for that.
#[test]
fn a_setting_may_not_ask_for_the_runtime_that_it_is_for() {
    let asks = |_: &mut tokio::runtime::Builder| drop(Handle::current().tokio_handle());
    let Lanes { cpu, io: _io } = lanes_with(1, |lane| lane.tokio_runtime(asks));
    let refused = cpu.handle().tokio_handle().unwrap_err();
    assert_eq!(refused.kind(), JoinErrorKind::NoThreads);
    assert_eq!(cpu.spawn_cpu(gives(1)).wait().unwrap(), 1);
    assert!(cpu.shutdown().wait().is_empty());
}
