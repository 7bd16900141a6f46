//! How many tasks does a body cost the I/O runtime?
//!
//! One, which reads it. The end of a body of unknown length costs a second one on a runtime
//! of several threads: while that runtime shuts down, the task that feeds the body may be
//! gone before the one that reads it, and then the body seems to end (`bridge_ends.rs` has
//! the case). The refusal of a new task is the one sign of it that Tokio gives. On a runtime
//! of one thread no task is polled once the first one was dropped, so there is nothing to ask.

use std::future::pending;

use bytes::Bytes;
use futures::stream;
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::unbounded_channel;
use twolane::io::BodyError;
use twolane::{Handle, HandleExt};

use crate::stepped::wait;
use crate::support::{child, cpu_lane, time_limit};

const BODIES: u64 = 1_000;

/// Tokio numbers the tasks of a process in the order of their spawns.
fn number_of_a_task(io: &Runtime) -> u64 {
    io.spawn(async {}).id().to_string().parse().unwrap()
}

fn of_unknown_length() -> impl Body<Data = Bytes, Error = std::io::Error> + Send + 'static {
    let frames = ["hel", "lo"].map(|text| Ok(Frame::data(Bytes::from(text))));
    StreamBody::new(stream::iter(frames))
}

/// How many tasks were spawned for each body, in hundredths.
fn tasks_a_body<B>(io: &Runtime, cpu: &Handle, body: impl Fn() -> B) -> u64
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Debug + Send + 'static,
{
    let before = number_of_a_task(io);
    for _ in 0..BODIES {
        let bridged = cpu.body_from_io(body(), 1024);
        let read = io.block_on(bridged.collect()).unwrap();
        assert_eq!(read.to_bytes(), "hello");
    }
    (number_of_a_task(io) - before - 1) * 100 / BODIES
}

#[test]
fn the_tasks_of_a_body() {
    let _limit = time_limit();
    if !child::is_child() {
        // Alone in its process: the numbers are the process's.
        let test = "probes::the_tasks_of_a_body";
        assert_eq!(child::run(test, |_| (), |_| ()), "100 100 100 200");
        return;
    }
    let mut found = Vec::new();
    let one_thread = Builder::new_current_thread().build().unwrap();
    let threads = Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    for io in [one_thread, threads] {
        let cpu = cpu_lane(twolane::Backend::Rayon, 1, io.handle());
        let known = tasks_a_body(&io, &cpu.handle(), || Full::new(Bytes::from("hello")));
        let unknown = tasks_a_body(&io, &cpu.handle(), of_unknown_length);
        found.push(format!("{known} {unknown}"));
        wait(async { cpu.shutdown().await });
    }
    child::found(found.join(" "));
}

/// Without a probe: the feeder of a body goes with its runtime, before the task that reads the
/// body or after it.
#[test]
fn a_body_is_lost_with_a_runtime_of_one_thread() {
    let _limit = time_limit();
    for feeder_is_older in [true, false] {
        let io = Builder::new_current_thread().build().unwrap();
        let cpu = cpu_lane(twolane::Backend::Rayon, 1, io.handle());
        let (feeds, fed) = unbounded_channel::<Result<_, std::io::Error>>();
        feeds.send(Ok(Frame::data(Bytes::from("hello")))).unwrap();
        let feeder = async move {
            let _feeds = feeds;
            pending::<()>().await;
        };
        let fed = stream::unfold(fed, async |mut fed| Some((fed.recv().await?, fed)));
        let read = || cpu.handle().body_from_io(StreamBody::new(fed), 1024);
        let body = if feeder_is_older {
            drop(io.spawn(feeder));
            read()
        } else {
            let body = read();
            drop(io.spawn(feeder));
            body
        };
        // Until both wait.
        io.block_on(async {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        });
        drop(io);
        match wait(body.collect()) {
            Err(BodyError::Lost(lost)) => assert_eq!(lost.sent(), 5),
            other => panic!("{other:?}"),
        }
    }
}
