//! Streams and jobs of which a shutdown drops a part: see
//! `tests/shutdown/parts.rs`.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use std::future::pending;
use std::sync::mpsc::{self, Receiver, Sender};

use futures::StreamExt;
use futures::stream::{self, BoxStream, Stream};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::{JoinError as Dropped, JoinHandle};
use twolane_core::Handle;

use crate::support::{self, Lanes, lanes};

/// What it awaits of a part of its own, which will be dropped.
pub struct Part {
    dropped: Sender<String>,
    is_dropped: Receiver<String>,
    awaits: Sender<()>,
}

impl Part {
    pub fn new() -> (Self, Receiver<()>) {
        let (dropped, is_dropped) = mpsc::channel();
        let (awaits, is_awaiting) = mpsc::channel();
        let part = Self {
            dropped,
            is_dropped,
            awaits,
        };
        (part, is_awaiting)
    }

    pub fn spawn(&self) -> JoinHandle<()> {
        let dropped = support::Dropped(self.dropped.clone());
        tokio::spawn(async move {
            let _dropped = dropped;
            pending::<()>().await;
        })
    }

    /// In one poll.
    pub async fn join(self, part: JoinHandle<()>) -> Result<(), Dropped> {
        self.awaits.send(()).unwrap();
        self.is_dropped.recv().unwrap();
        part.await
    }

    pub async fn spawn_and_join(self) -> Result<(), Dropped> {
        let part = self.spawn();
        self.join(part).await
    }

    /// Ends where its part does.
    pub fn into_stream(self) -> impl Stream<Item = u8> {
        stream::once(self.spawn_and_join()).filter_map(async |joined| joined.ok().map(|()| 0))
    }
}

pub fn two_threads() -> Lanes {
    lanes(2)
}

/// A reader must not take it for the end.
pub fn is_cut<T: Send + 'static>(read: fn(&Handle, Part) -> Result<usize, T>) {
    let lanes = two_threads();
    let (part, awaits) = Part::new();
    let handle = lanes.cpu.handle().clone();
    let reader = std::thread::spawn(move || read(&handle, part));
    awaits.recv().unwrap();
    lanes.cpu.shutdown_background();
    assert!(reader.join().unwrap().is_err());
}

/// A stream of one item and then of what a job of the lane sends, which is nothing. Once the
/// item was read, the second poll waits until the lane has dropped the job.
fn reads_of_a_job(
    cpu: &Handle,
    awaits: Sender<()>,
    is_read: Receiver<()>,
) -> impl Stream<Item = u8> + Send + 'static {
    let (dropped, is_dropped) = mpsc::channel();
    let (sender, mut receiver) = unbounded_channel();
    let dropped = support::Dropped(dropped);
    let sends = cpu.spawn(async move {
        // Dropped in the reverse order.
        let _dropped = dropped;
        let _sender = sender;
        pending::<()>().await;
    });
    let rest = async move {
        let _sends = sends;
        while is_read.try_recv().is_err() {
            twolane_core::yield_now().await;
        }
        awaits.send(()).unwrap();
        is_dropped.recv().unwrap();
        receiver.recv().await
    };
    stream::iter([1]).chain(stream::once(rest).filter_map(async |item| item))
}

/// Such a stream, read by a thread of its own, ends with an error. `read` reads all of it, and tells
/// of each item whether it is none.
pub fn is_cut_with_a_job(read: fn(&Handle, BoxStream<'static, u8>, &mut dyn FnMut(bool))) {
    let (cpu, lanes) = lanes(2).and_handle();
    let (awaits, is_awaiting) = mpsc::channel();
    let (has_read, is_read) = mpsc::channel();
    let source = reads_of_a_job(&cpu, awaits, is_read).boxed();
    let reader = std::thread::spawn(move || {
        let mut is_cut = false;
        read(&cpu, source, &mut |is_ok| {
            is_cut |= !is_ok;
            let _ = has_read.send(());
        });
        is_cut
    });
    is_awaiting.recv().unwrap();
    lanes.cpu.shutdown_background();
    assert!(reader.join().unwrap());
}
