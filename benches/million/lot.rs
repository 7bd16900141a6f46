//! Where the parked wait until all of them are there.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::thread::{self, Thread};

use futures::task::AtomicWaker;

/// Lives as long as the process, so that a job holds a pointer to it and no count.
pub struct Lot {
    /// A waker each: the counterpart of the place that Go's channel makes for
    /// each goroutine that waits on it.
    places: Box<[AtomicWaker]>,
    to_come: AtomicUsize,
    submitter: Thread,
    is_open: AtomicBool,
}

impl Lot {
    /// For `count` futures.
    pub fn new(count: usize) -> &'static Self {
        Box::leak(Box::new(Self {
            places: (0..count).map(|_| AtomicWaker::new()).collect(),
            to_come: AtomicUsize::new(count),
            submitter: thread::current(),
            is_open: AtomicBool::new(false),
        }))
    }

    /// By the submitter. The last one is still about to rest then.
    pub fn wait_until_full(&self) {
        while self.to_come.load(SeqCst) > 0 {
            thread::park();
        }
    }

    /// Lets the futures go on.
    pub fn open(&self) {
        self.is_open.store(true, SeqCst);
        for place in &self.places {
            place.wake();
        }
    }

    fn arrive(&self) {
        if self.to_come.fetch_sub(1, SeqCst) == 1 {
            self.submitter.unpark();
        }
    }

    /// Parks a future.
    pub fn park(&'static self, place: usize) -> Parked {
        Parked {
            lot: self,
            place,
            has_arrived: false,
        }
    }
}

pub struct Parked {
    lot: &'static Lot,
    place: usize,
    has_arrived: bool,
}

impl Future for Parked {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let lot = self.lot;
        lot.places[self.place].register(cx.waker());
        if lot.is_open.load(SeqCst) {
            return Poll::Ready(());
        }
        if !self.has_arrived {
            self.has_arrived = true;
            lot.arrive();
        }
        Poll::Pending
    }
}
