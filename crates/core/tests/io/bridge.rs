//! Does everything that goes over the bridge arrive, and nothing that looks
//! whole and is not? And does it hold no more than it may?

use std::io;
use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;

use crate::stepped::{Stepped, wait};
use crate::support::{Lanes, lanes};
use futures::stream::{self, Stream, StreamExt, TryStreamExt};
use hyper::body::Bytes;
use twolane_core::io::BridgeError;

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

/// What was buffered before the lane stopped is still the reader's, and the
/// error comes after it.
#[test]
fn what_came_before_the_stop_is_read_before_the_error() {
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

/// The first clone that asks gets it; the others stay errors.
#[test]
fn the_payload_of_a_panic_comes_over_the_bridge() {
    let Lanes { cpu, io: _io } = lanes(1);
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
}

/// The busy reader of an endless body: measured, an unbounded bridge holds
/// 522 MiB of 512.
#[test]
fn a_reader_that_does_nothing_holds_no_more_than_the_limit() {
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
    let lanes = Stepped::new();
    let (asked, source) = counted(());
    let source = source.take(1_000_000);
    let cpu = lanes.cpu.handle();
    let bridged = cpu.stream_from_io(source, usize::MAX, |()| 1);
    lanes.io.block_on(async {
        while asked.load(SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    });
    let when_others_had_their_turn = asked.load(SeqCst);
    assert!(when_others_had_their_turn < 1_000_000);
    let all = bridged.try_fold(0, |n, ()| async move { Ok(n + 1) });
    assert_eq!(lanes.io.block_on(all).unwrap(), 1_000_000);
}
