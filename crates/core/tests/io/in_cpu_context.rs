//! What is inside `in_cpu_context` finds the CPU lane's own Tokio runtime, and only
//! while it is polled.

use std::panic::catch_unwind;

use crate::support::{Lanes, lanes, thread_name};
use futures::executor::block_on;
use futures::stream::{self, Stream, StreamExt, TryStreamExt};
use tokio::net::{TcpListener, TcpStream};
use twolane_core::in_cpu_context;

async fn spawned() -> String {
    tokio::spawn(async { thread_name() }).await.unwrap()
}

/// What such a task gives to the I/O lane is there, and the job around it still has the
/// I/O runtime's context.
#[test]
fn the_io_lane_is_as_near_as_before() {
    let Lanes { cpu, io: _io } = lanes(2);
    let inside = async {
        let on_io = || twolane_core::spawn_io(async { thread_name() });
        let polled = on_io().await;
        let of_task = tokio::spawn(async move { on_io().await }).await;
        [polled.unwrap(), of_task.unwrap().unwrap()]
    };
    let job = cpu.spawn(async move {
        let before = spawned().await;
        let inside = in_cpu_context(inside).await;
        [vec![before], inside.to_vec(), vec![spawned().await]].concat()
    });
    assert_eq!(job.wait().unwrap(), ["io"; 4]);
}

/// The stream that an engine returns spawns parts of itself when it is polled, and these spawn parts
/// of theirs.
#[test]
fn a_stream_spawns_on_the_cpu_lane() {
    let Lanes { cpu, io } = lanes(2);
    let nested = |_| async { tokio::spawn(spawned()).await.unwrap() };
    let stream = stream::iter(0..3).then(nested);
    assert_eq!(in_cpu_context(stream::iter(0..3)).size_hint(), (3, Some(3)));
    let handle = cpu.handle().clone();
    let bridged = handle.stream_from_cpu(in_cpu_context(stream), 1, |_| 1);
    let threads: Vec<_> = io.block_on(bridged.try_collect()).unwrap();
    assert_eq!(threads.len(), 3);
    for thread in threads {
        assert!(thread.starts_with("cpu-tokio-"), "{thread}");
    }
}

/// That runtime has no I/O driver: a socket must fail at once, with a message that the
/// documentation quotes beside the remedy. If Tokio changes its words, the documentation
/// must follow.
#[test]
fn a_socket_inside_fails_loudly() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let Lanes { cpu, io: _io } = lanes(1);
    let connects = async move { TcpStream::connect(address).await };
    let error = cpu.spawn(in_cpu_context(connects)).wait().unwrap_err();
    assert!(error.is_panic(), "{error}");
    let quoted = "A Tokio 1.x context was found, but IO is disabled";
    assert!(error.to_string().contains(quoted), "{error}");

    let remedy = async { twolane_core::spawn_io(TcpListener::bind("127.0.0.1:0")).await };
    let listener = cpu.spawn(in_cpu_context(remedy)).wait().unwrap();
    assert!(listener.unwrap().is_ok());
}

fn assert_remedy(text: &str) {
    let (cause, remedy) = ("outside a job", "Give the future to `spawn`");
    assert!(text.contains(cause) && text.contains(remedy), "{text}");
}

/// Where no runtime of a CPU lane is, a silent fallback would put the engine's tasks on
/// the I/O lane.
#[test]
fn where_there_is_no_such_runtime_it_panics_with_the_remedy() {
    let Lanes { cpu, io: _io } = lanes(1);
    let ready = || in_cpu_context(async {});
    let on_io = cpu.handle().spawn_io(ready()).wait().unwrap_err();
    assert!(on_io.is_panic());
    assert_remedy(&on_io.to_string());
    let mut items = in_cpu_context(stream::iter([1]));
    for panic in [
        catch_unwind(|| block_on(ready())).unwrap_err(),
        catch_unwind(move || block_on(items.next())).unwrap_err(),
    ] {
        assert_remedy(panic.downcast_ref::<String>().unwrap());
    }
}
