//! What ends a bridge: its reader, its lane, or chance. Never silently.

use std::sync::mpsc;
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::dice::Dice;
use crate::stepped::{Stepped, wait};
use crate::support::wait::wait_until;
use crate::support::{Dropped, Lanes, lanes, thread_name};
use futures::stream::{self, Stream, StreamExt, TryStreamExt};

/// A stream that tells of its end, by way of what it has captured.
fn guarded<S: Stream>(
    dropped: &mpsc::Sender<String>,
    stream: S,
) -> impl Stream<Item = S::Item> + use<S> {
    let guard = Dropped(dropped.clone());
    stream.map(move |item| {
        let _ = &guard;
        item
    })
}

/// A download without a reader must stop, wherever it is.
#[test]
fn dropping_the_reader_drops_the_stream_on_its_own_lane() {
    let Lanes { cpu, io: _io } = lanes(1);
    let handle = cpu.handle().clone();
    let (dropped, dropped_on) = mpsc::channel();

    // Nothing more to give, or always more, and no room most of the time.
    let quiet = || stream::iter([1]).chain(stream::pending()).boxed();
    let endless = || stream::repeat(1).boxed();
    let sources: [&dyn Fn() -> _; 2] = [&quiet, &endless];
    for source in sources {
        let mut there = handle.stream_from_io(guarded(&dropped, source()), 2, |_| 1);
        assert_eq!(wait(there.next()).unwrap().unwrap(), 1);
        drop(there);
        assert_eq!(dropped_on.recv().unwrap(), "io");
        let mut back = handle.stream_from_cpu(guarded(&dropped, source()), 2, |_| 1);
        assert_eq!(wait(back.next()).unwrap().unwrap(), 1);
        drop(back);
        assert_eq!(dropped_on.recv().unwrap(), "cpu-0");
    }
}

/// Of 20,575 downloads whose clients went all counted as completed. The stream sleeps for want of
/// room or of items, or is in the middle of an item.
#[test]
fn a_stream_whose_reader_goes_counts_as_cancelled() {
    let Lanes { cpu, io: _io } = lanes(1);
    let handle = cpu.handle().clone();
    let all = handle.stream_from_cpu(stream::iter(0..3), 2, |_| 1);
    assert_eq!(wait(all.try_collect::<Vec<_>>()).unwrap(), [0, 1, 2]);
    let mut full = handle.stream_from_cpu(stream::repeat(1), 2, |_| 1);
    assert_eq!(wait(full.next()).unwrap().unwrap(), 1);
    let quiet = handle.stream_from_cpu(stream::pending::<u8>(), 2, |_| 1);
    let (began, begins) = mpsc::channel();
    let (let_go, go) = mpsc::channel::<()>();
    let slow = stream::repeat_with(move || {
        began.send(()).unwrap();
        go.recv()
    });
    let slow = handle.stream_from_cpu(slow, 2, |_| 1);
    begins.recv().unwrap();
    drop((full, quiet, slow, let_go));
    wait_until(|| handle.metrics().cancelled == 3);
    let metrics = handle.metrics();
    assert_eq!((metrics.completed, metrics.suspended), (1, 0));
}

/// The same with nothing left to chance: the pump sleeps for sure, once for
/// want of room and once for want of items, or has not begun.
#[test]
fn a_sleeping_pump_is_woken_by_the_end_of_its_reader() {
    let lanes = Stepped::new();
    let handle = lanes.cpu.handle().clone();
    let (dropped, dropped_on) = mpsc::channel();
    let full = handle.stream_from_io(guarded(&dropped, stream::repeat(1)), 1, |_| 1);
    let quiet = handle.stream_from_io(guarded(&dropped, stream::pending::<()>()), 1, |()| 1);
    lanes.until_idle();
    let not_begun = handle.stream_from_io(guarded(&dropped, stream::repeat(1)), 1, |_| 1);
    assert!(dropped_on.try_recv().is_err());
    drop((full, quiet, not_begun));
    lanes.until_idle();
    assert_eq!(dropped_on.try_iter().count(), 3);
}

/// What is buffered is freed by the reader's end, not by the pump's next turn
/// on a lane that may be busy for long.
#[test]
fn the_buffer_goes_with_its_reader() {
    let lanes = Stepped::new();
    let (dropped, dropped_on) = mpsc::channel();
    let items = stream::repeat_with(move || Dropped(dropped.clone()));
    let bridged = lanes.cpu.handle().stream_from_io(items, 3, |_| 1);
    lanes.until_idle();
    drop(bridged);
    let threads: Vec<_> = dropped_on.try_iter().collect();
    assert_eq!(threads, [thread_name(), thread_name(), thread_name()]);
}

/// It would go into a buffer that no reader empties.
#[test]
fn an_item_that_comes_after_its_reader_has_gone_is_dropped() {
    let lanes = lanes(1);
    let (polled, is_polled) = mpsc::channel();
    let (let_go, wait) = mpsc::channel();
    let source = stream::poll_fn(move |_| {
        polled.send(()).unwrap();
        Poll::Ready(Some(wait.recv().unwrap()))
    });
    let bridged = lanes.cpu.handle().stream_from_io(source, 10_000, |_| 1);
    is_polled.recv().unwrap();
    drop(bridged);
    let (dropped, is_dropped) = mpsc::channel();
    let_go.send(Dropped(dropped)).unwrap();
    is_dropped.recv().unwrap();
    // And then the source.
    is_polled.recv().unwrap_err();
}

/// The other direction: a request body that is encoded by a job.
#[test]
fn a_stream_from_the_cpu_lane_is_polled_there_and_tells_of_its_shutdown() {
    let Lanes { cpu, io } = lanes(1);
    let encoded = stream::repeat_with(thread_name)
        .take(3)
        .chain(stream::pending());
    let mut bridged = cpu.handle().stream_from_cpu(encoded, 2, |_| 1);
    for _ in 0..3 {
        assert_eq!(io.block_on(bridged.next()).unwrap().unwrap(), "cpu-0");
    }
    // The reader sleeps, or is about to: it must be told either way.
    let (asks, asked) = mpsc::channel();
    let reader = io.spawn(async move {
        asks.send(()).unwrap();
        (bridged.next().await, bridged.next().await)
    });
    asked.recv().unwrap();
    cpu.shutdown().wait();
    let (error, end) = io.block_on(reader).unwrap();
    let error = error.unwrap().unwrap_err();
    let text = error.to_string();
    assert!(text.contains("the CPU lane stopped"), "{text}");
    assert!(!error.is_panic());
    assert_eq!(error.sent(), 3);
    assert!(end.is_none());
}

/// A bridge that can't even begin names the lane that is gone, not its own.
#[test]
fn a_bridge_that_was_refused_names_the_lane_that_is_gone() {
    let Lanes { cpu, io: _io } = lanes(1);
    cpu.shutdown().wait();
    let mut there = cpu.handle().stream_from_io(stream::iter([1]), 1, |_| 1);
    let error = wait(there.next()).unwrap().unwrap_err();
    assert!(error.to_string().contains("CPU lane"), "{error}");

    let Lanes { cpu, io } = lanes(1);
    drop(io);
    let mut back = cpu.handle().stream_from_cpu(stream::iter([1]), 1, |_| 1);
    let error = wait(back.next()).unwrap().unwrap_err();
    assert!(error.to_string().contains("I/O"), "{error}");
}

/// A body that has begun is whole: the deadline is for its beginning.
#[test]
fn a_deadline_refuses_a_stream_and_does_not_end_it() {
    let Lanes { cpu, io: _io } = lanes(1);
    let handle = cpu.handle().clone();
    let permit = || handle.try_reserve().unwrap();
    let late = permit().with_deadline(Instant::now());
    let mut late = late.stream_from_cpu(stream::iter([1]), 1, |_| 1);
    let error = wait(late.next()).unwrap().unwrap_err();
    assert!(error.is_unavailable());
    assert!(error.to_string().contains("deadline"), "{error}");
    assert_eq!(handle.metrics().rejected, 1);

    let deadline = Instant::now() + Duration::from_secs(1);
    let (more, items) = futures::channel::mpsc::unbounded();
    let begun = permit().with_deadline(deadline);
    let mut begun = begun.stream_from_cpu(items, 1, |_| 1);
    more.unbounded_send(1).unwrap();
    assert_eq!(wait(begun.next()).unwrap().unwrap(), 1);
    wait_until(|| Instant::now() > deadline);
    more.unbounded_send(2).unwrap();
    assert_eq!(wait(begun.next()).unwrap().unwrap(), 2);
    drop(more);
    assert!(wait(begun.next()).is_none());
}

/// A thousand times, the I/O lane ends somewhere in a stream. The reader gets all and an
/// end, or a part and an error. (In `bridge.rs` it ends where the stream has stopped for good.)
#[test]
fn a_stream_that_is_killed_anywhere_is_whole_or_an_error() {
    let mut dice = Dice::from_environment();
    for round in 0..1_000 {
        let Lanes { cpu, io } = lanes(1);
        let (whole, pauses) = (dice.below(100), dice.below(4) + 1);
        let source = stream::iter(0..whole).then(move |n| async move {
            if n % pauses == 0 {
                tokio::task::yield_now().await;
            }
            n
        });
        let limit = dice.below(10) as usize;
        let bridged = cpu.handle().stream_from_io(Box::pin(source), limit, |_| 1);
        // Not in a job: the lane ends with its I/O runtime.
        let reader = std::thread::spawn(|| wait(bridged.collect::<Vec<_>>()));
        for _ in 0..dice.below(20_000) {
            std::hint::spin_loop();
        }
        io.shutdown_background();
        let mut read = reader.join().unwrap();
        let end = read.pop_if(|last| last.is_err());
        let read: Vec<_> = read.into_iter().map(Result::unwrap).collect();
        let all = match end {
            Some(error) => error.unwrap_err().sent() as u64,
            None => whole,
        };
        assert!(read.into_iter().eq(0..all), "round {round}");
    }
}

/// An unread rest, and a reader that comes late: the bridge keeps both.
#[test]
fn a_reader_may_come_after_everything_has_ended() {
    let Lanes { cpu, io } = lanes(1);
    let (dropped, dropped_on) = mpsc::channel();
    let source = guarded(&dropped, stream::iter(0..5));
    let bridged = cpu.handle().stream_from_io(source, 100, |_| 1);
    dropped_on.recv().unwrap();
    drop((cpu, io));
    let read = wait(bridged.try_collect::<Vec<_>>());
    assert_eq!(read.unwrap(), [0, 1, 2, 3, 4]);
}
