//! Does everything that goes over the bridge arrive, and nothing that looks
//! whole and is not? And does it hold no more than it may?

use std::io;
use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;

use crate::stepped::{Stepped, wait};
use crate::support::{self, Lanes, lanes, on_both};
use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt, TryStreamExt};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use twolane::io::BodyError;
use twolane::io::BridgeError;
use twolane::{Backend, HandleExt};

/// Endless; counts what it was asked for.
fn counted<T: Clone>(item: T) -> (Arc<AtomicUsize>, impl Stream<Item = T>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let endless = stream::repeat_with(move || {
        count.fetch_add(1, SeqCst);
        item.clone()
    });
    (asked, endless)
}

/// Frames of 5 bytes, and then `rest`.
pub(super) fn hello_and<S>(rest: S) -> impl Body<Data = Bytes, Error = &'static str> + Send
where
    S: Stream<Item = Result<Frame<Bytes>, &'static str>> + Send + 'static,
{
    let hello = stream::iter([Ok(Frame::data(Bytes::from("hello")))]);
    StreamBody::new(Box::pin(hello.chain(rest)))
}

pub(super) fn lost<B>(end: Result<B, BodyError<&'static str>>) -> BridgeError {
    match end {
        Err(BodyError::Lost(lost)) => lost,
        Err(error) => panic!("{error:?}"),
        Ok(_) => panic!("it looks whole"),
    }
}

/// `object_store`'s `SpawnService` ends a body there: 5 of 10 bytes, and `Ok`.
#[test]
fn an_io_lane_that_stops_in_mid_body_is_an_error_not_an_end() {
    on_both(1, |Lanes { cpu, io }| {
        let handle = cpu.handle();
        let mut body = handle.body_from_io(hello_and(stream::pending()), 1024);
        let first = wait(body.frame()).unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "hello");
        drop(io);
        assert!(!body.is_end_stream());
        let lost = lost(wait(body.frame()).unwrap());
        assert!(!lost.is_panic());
        assert_eq!(lost.sent(), 5);
        let text = lost.to_string();
        assert!(text.contains("cut short after 5 bytes: "), "{text}");
        assert!(text.contains("the I/O lane stopped"), "{text}");
        assert!(!lost.try_into_panic().unwrap_err().is_panic());
        // After the error, not instead of it.
        assert!(wait(body.frame()).is_none());
    });
}

/// What was buffered before the lane stopped is still the reader's, and the
/// error comes after it.
#[test]
fn what_came_before_the_stop_is_read_before_the_error() {
    let _limit = support::time_limit();
    let lanes = Stepped::new();
    let source = stream::iter(0..3).chain(stream::pending());
    let mut bridged = lanes.cpu.handle().stream_from_io(source, 100, |_| 1);
    lanes.until_idle();
    drop(lanes.io);
    let read: Vec<_> = wait(bridged.by_ref().take(3).try_collect()).unwrap();
    assert_eq!(read, [0, 1, 2]);
    let lost = wait(bridged.next()).unwrap().unwrap_err();
    assert_eq!(lost.sent(), 3);
    let text = lost.to_string();
    let expected = "cut short after 3 units of `size`: ";
    assert!(text.contains(expected), "{text}");
    assert!(wait(bridged.next()).is_none());
}

#[test]
fn a_body_that_panics_is_an_error_with_the_panic_s_text() {
    let _limit = support::time_limit();
    let Lanes { cpu, io: _io } = lanes(Backend::Rayon, 1);
    let panics = stream::poll_fn(|_| panic!("no such codec"));
    let body = cpu.handle().body_from_io(hello_and(panics), 1024);
    let lost = lost(wait(body.collect()));
    assert!(lost.is_panic());
    let text = lost.to_string();
    assert!(
        text.contains("no such codec") && text.contains("I/O lane"),
        "{text}"
    );
    // It was the stream's panic, not the lane's.
    assert_eq!(cpu.handle().spawn_io(async { 1 }).wait().unwrap(), 1);
}

/// The first clone that asks gets it; the others stay errors.
#[test]
fn the_payload_of_a_panic_comes_over_the_bridge() {
    on_both(1, |Lanes { cpu, io: _io }| {
        let panics = stream::poll_fn(|_| -> Poll<Option<u8>> { panic_any(7_u64) });
        let mut bridged = cpu.handle().stream_from_cpu(panics, 1024, |_| 1);
        let lost = wait(bridged.next()).unwrap().unwrap_err();
        let clone = lost.clone();
        let payload = lost.try_into_panic().unwrap();
        assert_eq!(payload.downcast_ref(), Some(&7_u64));
        let lost = clone.try_into_panic().unwrap_err();
        assert!(lost.is_panic());
        let text = lost.to_string();
        let error = io::Error::from(lost).into_inner().unwrap();
        assert_eq!(error.downcast::<BridgeError>().unwrap().to_string(), text);
    });
}

#[test]
fn a_body_s_own_error_comes_as_it_is() {
    let _limit = support::time_limit();
    let Lanes { cpu, io: _io } = lanes(Backend::Rayon, 1);
    let reset = stream::iter([Err("reset by peer")]);
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
    let _limit = support::time_limit();
    let lanes = Stepped::new();
    let mut empty = lanes.cpu.handle().body_from_io(Empty::<Bytes>::new(), 1024);
    assert!(empty.is_end_stream());
    assert_eq!(empty.size_hint().exact(), Some(0));
    assert!(wait(empty.frame()).is_none());
    let full = Full::new(Bytes::new());
    assert!(lanes.cpu.handle().body_from_io(full, 0).is_end_stream());
}

/// The busy reader of an endless body: measured, an unbounded bridge holds
/// 522 MiB of 512.
#[test]
fn a_reader_that_does_nothing_holds_no_more_than_the_limit() {
    let _limit = support::time_limit();
    const LIMIT: usize = 256 * 1024;
    for (limit, chunk, fit) in [
        (LIMIT, 64 * 1024, 4),
        (LIMIT, 60_000, 5),
        (LIMIT, LIMIT - 1, 2),
        (LIMIT, 2 * LIMIT, 1),
        (0, 4, 1),
    ] {
        let lanes = Stepped::new();
        let (asked, source) = counted(Bytes::from(vec![7; chunk]));
        let mut bridged = lanes.cpu.handle().stream_from_io(source, limit, Bytes::len);
        for read in 0..100 {
            lanes.until_idle();
            // The pump reads on as soon as it may, and no further.
            assert_eq!(asked.load(SeqCst), fit + read, "chunks of {chunk}");
            let buffered = bridged.read_ahead();
            assert_eq!(buffered, fit * chunk);
            assert!(buffered < limit.max(1) + chunk);
            assert_eq!(wait(bridged.next()).unwrap().unwrap().len(), chunk);
        }
    }
}

/// A source that has always more must not keep an I/O worker from its sockets,
/// however fast it is read or large the limit is.
#[test]
fn a_source_that_is_always_ready_gives_way_to_others_on_the_io_lane() {
    let _limit = support::time_limit();
    let lanes = Stepped::new();
    let (asked, source) = counted(());
    let source = source.take(1_000_000);
    let bridged = lanes
        .cpu
        .handle()
        .stream_from_io(source, usize::MAX, |()| 1);
    lanes.io.block_on(async {
        while asked.load(SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    });
    let when_others_had_their_turn = asked.load(SeqCst);
    assert!(when_others_had_their_turn < 1_000_000);
    let all = lanes
        .io
        .block_on(bridged.try_fold(0, |n, ()| async move { Ok(n + 1) }));
    assert_eq!(all.unwrap(), 1_000_000);
}
