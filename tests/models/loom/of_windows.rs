//! The window of a stream: its pump waits for room, which others give back.

use std::future::poll_fn;
use std::sync::Arc;

use loom::future::block_on;
use loom::thread;

use crate::model;
use crate::window::Window;

/// The consumer takes one output after the other. The pump reads no further than the
/// window, and misses no wake-up.
#[test]
fn the_pump_is_woken_by_what_the_consumer_gives_back() {
    model(|| {
        let window = Arc::new(Window::new(1, usize::MAX));
        window.take(1, 0);
        let consumer = thread::spawn({
            let window = window.clone();
            move || window.give_back(1, 0)
        });
        let room = block_on(poll_fn(|cx| window.poll_room(cx)));
        assert_eq!(room, 1);
        window.take(1, 0);
        consumer.join().unwrap();
        assert_eq!(window.items(), 1);
    });
}

/// A worker replaces a large input by a small output, and the consumer takes another one:
/// an input that needs both of them fits then.
#[test]
fn the_pump_is_woken_by_bytes_that_become_free() {
    model(|| {
        let window = Arc::new(Window::new(4, 10));
        window.take(2, 9);
        let worker = thread::spawn({
            let window = window.clone();
            move || window.replace(5, 1)
        });
        let consumer = thread::spawn({
            let window = window.clone();
            move || window.give_back(1, 4)
        });
        block_on(poll_fn(|cx| window.poll_fits(cx, 9)));
        window.take(1, 9);
        worker.join().unwrap();
        consumer.join().unwrap();
        assert_eq!((window.items(), window.bytes()), (2, 10));
    });
}
