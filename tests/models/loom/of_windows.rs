//! The window of a stream: its pump waits for room, which others give back.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

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

/// A worker replaces inputs by larger outputs: the window is full then, and empty once the consumer
/// has them.
#[test]
fn the_window_counts_what_is_in_it() {
    model(|| {
        let (window, mut cx) = (Window::new(4, 10), Context::from_waker(Waker::noop()));
        window.take(2, 4);
        assert_eq!(window.poll_room(&mut cx), Poll::Ready(2));
        window.replace(4, 10);
        assert_eq!(window.bytes(), 10);
        assert!(window.poll_room(&mut cx).is_pending());
        window.give_back(2, 10);
        assert_eq!((window.items(), window.bytes()), (0, 0));
        assert_eq!(window.poll_room(&mut cx), Poll::Ready(4));
    });
}
