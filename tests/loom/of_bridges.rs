//! The bridge between the lanes.

use std::future::poll_fn;
use std::task::Poll;

use loom::future::block_on;
use loom::thread;

use crate::bridge::buffer;
use crate::metrics::held::Held;
use crate::model;

/// The reader gets all items, and only then the end. The limit makes the writer wait
/// for each item.
#[test]
fn the_bridge_carries_all_and_its_end() {
    model(|| {
        let (mut writer, mut reader) = buffer::channel::<u8>(Held::default(), 1, "I/O", "bytes");
        let pump = thread::spawn(move || {
            for item in 1..=2 {
                let room = block_on(poll_fn(|cx| writer.poll_room(cx)));
                assert_eq!(room, buffer::Room::Yes);
                writer.send(item, 1);
            }
            writer.complete();
        });
        let mut next = || block_on(poll_fn(|cx| reader.poll_read(cx)));
        assert_eq!(next().unwrap().unwrap(), 1);
        assert_eq!(next().unwrap().unwrap(), 2);
        assert!(next().is_none());
        pump.join().unwrap();
    });
}

/// If the writer is dropped, the reader gets its items and then an error.
#[test]
fn a_lost_writer_is_no_end() {
    model(|| {
        let (mut writer, mut reader) = buffer::channel::<u8>(Held::default(), 8, "I/O", "bytes");
        let pump = thread::spawn(move || {
            writer.send(1, 1);
            drop(writer);
        });
        let mut next = || block_on(poll_fn(|cx| reader.poll_read(cx)));
        assert_eq!(next().unwrap().unwrap(), 1);
        assert!(next().unwrap().is_err());
        pump.join().unwrap();
    });
}

/// The reader is dropped while the writer waits for room.
#[test]
fn a_gone_reader_frees_the_writer() {
    model(|| {
        let (mut writer, reader) = buffer::channel::<u8>(Held::default(), 1, "I/O", "bytes");
        writer.send(1, 1);
        let other = thread::spawn(move || drop(reader));
        let room = block_on(poll_fn(|cx| match writer.poll_room(cx) {
            // The reader empties the buffer when it is dropped.
            Poll::Ready(buffer::Room::Yes) | Poll::Pending => Poll::Pending,
            gone => gone,
        }));
        assert_eq!(room, buffer::Room::ReaderGone);
        other.join().unwrap();
    });
}
