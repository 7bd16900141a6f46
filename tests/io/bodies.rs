//! A body that goes over the bridge is whole, or an error. (Of the bridge itself: `tests/io/` of
//! `twolane-core`. Of an answer whose I/O lane ends: `crossing.rs`.)

use std::future::pending;
use std::io;
use std::sync::mpsc;
use std::task::Poll;

use crate::stepped::{Stepped, wait};
use crate::support::{Dropped, Lanes, lanes, lasts};
use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use twolane::HandleExt;
use twolane::io::{BodyError, BridgeError};

/// Frames of 5 bytes, and then `rest`.
fn hello_and<S>(rest: S) -> impl Body<Data = Bytes, Error = &'static str> + Send
where
    S: Stream<Item = Result<Frame<Bytes>, &'static str>> + Send + 'static,
{
    let hello = stream::iter([Ok(Frame::data(Bytes::from("hello")))]);
    StreamBody::new(Box::pin(hello.chain(rest)))
}

/// Reads a body to the error that says why it is not whole.
fn lost<B>(mut body: B) -> BridgeError
where
    B: Body<Data = Bytes, Error = BodyError<&'static str>> + Unpin,
{
    let error = loop {
        if let Err(error) = wait(body.frame()).expect("it looks whole") {
            break error;
        }
    };
    // After the error, not instead of it.
    assert!(wait(body.frame()).is_none());
    match error {
        BodyError::Lost(lost) => lost,
        error => panic!("{error:?}"),
    }
}

#[test]
fn a_body_that_panics_is_an_error_with_the_panic_s_text() {
    let Lanes { cpu, io: _io } = lanes(1);
    let panics = stream::poll_fn(|_| panic!("no such codec"));
    let body = cpu.handle().body_from_io(hello_and(panics), 1024);
    let lost = lost(body);
    assert!(lost.is_panic());
    let text = lost.to_string();
    assert!(
        text.contains("no such codec") && text.contains("I/O lane"),
        "{text}"
    );
    // It was the stream's panic, not the lane's.
    assert_eq!(cpu.handle().spawn_io(async { 1 }).wait().unwrap(), 1);
}

/// And ends the body: one that fails at each poll filled the memory with its errors, which weigh
/// nothing.
#[test]
fn a_body_s_own_error_comes_as_it_is_and_once() {
    let Lanes { cpu, io: _io } = lanes(1);
    let reset = stream::repeat_with(|| Err("reset by peer"));
    let mut body = cpu.handle().body_from_io(hello_and(reset), 1024);
    assert!(wait(body.frame()).unwrap().is_ok());
    match wait(body.frame()) {
        Some(Err(error @ BodyError::Body("reset by peer"))) => {
            assert_eq!(error.to_string(), "reset by peer");
        }
        other => panic!("{other:?}"),
    }
    assert!(wait(body.frame()).is_none());
    assert!(body.is_end_stream());
}

/// An empty body says so at once, and needs no reader: not even an
/// I/O lane that runs.
#[test]
fn an_empty_body_is_at_its_end_from_the_start() {
    let lanes = Stepped::new();
    let mut empty = lanes.cpu.handle().body_from_io(Empty::<Bytes>::new(), 1024);
    assert!(empty.is_end_stream());
    assert_eq!(empty.size_hint().exact(), Some(0));
    assert!(wait(empty.frame()).is_none());
    let full = Full::new(Bytes::new());
    assert!(lanes.cpu.handle().body_from_io(full, 0).is_end_stream());
}

/// What is seen when the I/O lane ends while another worker polls the body:
/// the task that feeds it (hyper's connection) is dropped first. hyper says
/// "closed before message completed" then or, in versions without its #4069,
/// that the body is at its end (hyper#3995). Neither is the peer's doing, and
/// the second looks whole.
#[test]
fn a_body_whose_feeder_was_dropped_with_its_lane_is_lost() {
    for last in [None, Some("closed before message completed")] {
        let Lanes { cpu, io } = lanes(1);
        let (dropped, feeder_gone) = mpsc::channel();
        let (feeds, polled) = lasts(Dropped(dropped));
        io.spawn(feeds);
        polled.recv().unwrap();

        let (asks, asked) = mpsc::channel();
        let fed = stream::poll_fn(move |_| {
            asks.send(()).unwrap();
            // On the other worker, which ends the runtime.
            feeder_gone.recv().unwrap();
            Poll::Ready(last.map(Err))
        });
        let body = cpu.handle().body_from_io(hello_and(fed), 1024);
        asked.recv().unwrap();
        io.shutdown_background();
        assert_eq!(lost(body).sent(), 5);
    }
}

/// On a runtime of one thread, the feeder goes before the task that reads the body or after it.
#[test]
fn a_body_is_lost_with_a_runtime_of_one_thread() {
    for feeder_is_older in [true, false] {
        let lanes = Stepped::new();
        let (feeds, fed) = tokio::sync::oneshot::channel::<()>();
        let feed = || {
            lanes.io.spawn(async move {
                let _feeds = feeds;
                pending::<()>().await;
            })
        };
        let rest = stream::once(fed).filter_map(async |_| None);
        let read = || lanes.cpu.handle().body_from_io(hello_and(rest), 1024);
        let body = if feeder_is_older {
            feed();
            read()
        } else {
            let body = read();
            feed();
            body
        };
        lanes.until_idle();
        drop(lanes.io);
        assert!(!body.is_end_stream());
        let lost = lost(body);
        assert_eq!(lost.sent(), 5);
        assert!(!lost.try_into_panic().unwrap_err().is_panic());
    }
}

#[test]
fn the_limit_of_a_body_counts_in_bytes() {
    let lanes = Stepped::new();
    let (tell, read) = mpsc::channel();
    let frames = stream::repeat_with(move || {
        tell.send(()).unwrap();
        Ok::<_, io::Error>(Frame::data(Bytes::from("hello")))
    });
    let mut body = (lanes.cpu.handle()).body_from_io(StreamBody::new(frames), 12);
    lanes.until_idle();
    assert_eq!(read.try_iter().count(), 3);
    // 10 bytes are left, which is less than the limit.
    wait(body.frame()).unwrap().unwrap();
    lanes.until_idle();
    assert_eq!(read.try_iter().count(), 1);
}
