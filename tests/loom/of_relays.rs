//! Wakers on their way to the relay, the task of the I/O runtime that wakes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Wake, Waker};

use loom::sync::Notify;
use loom::thread;

use crate::model;
use crate::wake_list::WakeList;

/// Counted outside of the model, so that it orders nothing there.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

struct Relay {
    list: WakeList,
    event: Notify,
    woken: Arc<Woken>,
}

impl Relay {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            list: WakeList::new(),
            event: Notify::new(),
            woken: Arc::default(),
        })
    }

    fn push_from_threads(self: &Arc<Self>) -> [thread::JoinHandle<()>; 2] {
        [(), ()].map(|()| {
            let relay = self.clone();
            thread::spawn(
                move || match relay.list.push(Waker::from(relay.woken.clone())) {
                    Ok(()) => relay.event.notify(),
                    Err(waker) => {
                        waker.wake();
                        // For the model's relay, which goes on until it has seen two.
                        relay.event.notify();
                    }
                },
            )
        })
    }

    fn woken(&self) -> usize {
        self.woken.0.load(Relaxed)
    }
}

fn wake(wakers: Vec<Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}

/// A lost signal would leave the relay asleep for good, which loom reports.
#[test]
fn each_waker_is_woken() {
    model(|| {
        let relay = Relay::new();
        let pushes = relay.push_from_threads();
        while relay.woken() < 2 {
            relay.event.wait();
            wake(relay.list.take());
        }
        for push in pushes {
            push.join().unwrap();
        }
    });
}

/// The I/O runtime shuts down meanwhile.
#[test]
fn each_waker_is_woken_where_the_relay_ends() {
    model(|| {
        let relay = Relay::new();
        let pushes = relay.push_from_threads();
        wake(relay.list.end());
        for push in pushes {
            push.join().unwrap();
        }
        assert_eq!(relay.woken(), 2);
    });
}

/// A thread of the lane takes what the relay has not taken yet.
#[test]
fn each_waker_is_woken_once() {
    model(|| {
        let relay = Relay::new();
        let pushes = relay.push_from_threads();
        wake(relay.list.take());
        for push in pushes {
            push.join().unwrap();
        }
        wake(relay.list.take());
        assert_eq!(relay.woken(), 2);
    });
}
