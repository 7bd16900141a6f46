//! The window of the bridge between the lanes. The items cross by Tokio's `mpsc`, which loom does
//! not see: an operation of it is one step here.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use loom::future::block_on;
use loom::thread;

use crate::bridge::buffer;
use crate::model;
use crate::pace::clock::now;

/// The reader gets all items, and only then the end. The limit makes the writer wait
/// for each item.
#[test]
fn the_bridge_carries_all_and_its_end() {
    model(|| {
        let (mut writer, mut reader) = buffer::channel::<u8>(1, "I/O");
        let pump = thread::spawn(move || {
            for item in 1..=2 {
                assert!(block_on(poll_fn(|cx| writer.poll_room(cx))));
                writer.send(item, 1);
            }
            writer.complete();
        });
        let mut next = || block_on(poll_fn(|cx| Pin::new(&mut reader).poll_next(cx)));
        assert_eq!(next().unwrap().unwrap(), 1);
        assert_eq!(next().unwrap().unwrap(), 2);
        assert!(next().is_none());
        pump.join().unwrap();
    });
}

/// The reader is dropped while the writer waits for room, or for an item of the stream.
#[test]
fn a_gone_reader_frees_the_writer() {
    for limit in [1, 2] {
        model(move || {
            let (mut writer, reader) = buffer::channel::<u8>(limit, "I/O");
            writer.send(1, 1);
            let other = thread::spawn(move || drop(reader));
            block_on(poll_fn(|cx| match writer.poll_room(cx) {
                Poll::Ready(false) => Poll::Ready(()),
                Poll::Ready(true) | Poll::Pending => Poll::Pending,
            }));
            other.join().unwrap();
        });
    }
}

/// Smaller items are held back for a moment, and go together if they are half of the limit by then.
#[test]
fn half_of_the_limit_goes_to_the_reader() {
    model(|| {
        let (mut writer, mut reader) = buffer::channel::<u8>(10, "I/O");
        // The moment begins.
        writer.flush();
        writer.send(1, 3);
        writer.send(2, 2);
        writer.send(3, 5);
        let mut cx = Context::from_waker(Waker::noop());
        for item in 1..=3 {
            let next = Pin::new(&mut reader).poll_next(&mut cx);
            assert!(matches!(next, Poll::Ready(Some(Ok(it))) if it == item));
        }
    });
}

/// And at once if the moment is over.
#[test]
fn what_comes_after_the_moment_goes_to_the_reader() {
    model(|| {
        let (mut writer, mut reader) = buffer::channel::<u8>(10, "I/O");
        writer.flush();
        let flushed = now();
        while now() < flushed + buffer::HELD_FOR {}
        writer.send(1, 1);
        let next = Pin::new(&mut reader).poll_next(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(next, Poll::Ready(Some(Ok(1)))));
    });
}
