//! On `Backend::Runtime` a shutdown drops the Tokio tasks that jobs have spawned inside
//! `in_cpu_context`. What does the awaiter of such a job learn?
//!
//! The error that the job made of it, once: DataFusion's "task was cancelled". A job
//! that is in the middle of a poll finds a part of it dropped, and returns.

use std::future::{Future, pending};
use std::sync::mpsc::{self, Receiver, Sender};

use futures::StreamExt;
use futures::executor::block_on_stream;
use futures::stream::{self, Stream};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::{JoinError as Dropped, JoinHandle};
use twolane::{Backend, CpuStreamExt, Handle, JoinError, JoinErrorKind, in_cpu_context};

use crate::support::{self, Lanes, lanes, on_both, time_limit};

/// What it awaits of a part of its own, which will be dropped.
struct Part {
    dropped: Sender<String>,
    is_dropped: Receiver<String>,
    awaits: Sender<()>,
}

impl Part {
    fn new() -> (Self, Receiver<()>) {
        let (dropped, is_dropped) = mpsc::channel();
        let (awaits, is_awaiting) = mpsc::channel();
        let part = Self {
            dropped,
            is_dropped,
            awaits,
        };
        (part, is_awaiting)
    }

    fn spawn(&self) -> JoinHandle<()> {
        let dropped = support::Dropped(self.dropped.clone());
        tokio::spawn(async move {
            let _dropped = dropped;
            pending::<()>().await;
        })
    }

    /// In one poll.
    async fn join(self, part: JoinHandle<()>) -> Result<(), Dropped> {
        self.awaits.send(()).unwrap();
        self.is_dropped.recv().unwrap();
        part.await
    }

    async fn spawn_and_join(self) -> Result<(), Dropped> {
        let part = self.spawn();
        self.join(part).await
    }

    /// Ends where its part does.
    fn into_stream(self) -> impl Stream<Item = u8> {
        stream::once(self.spawn_and_join()).filter_map(async |joined| joined.ok().map(|()| 0))
    }
}

fn two_threads() -> Lanes {
    lanes(Backend::Runtime, 2)
}

fn is_shut_down<F>(work: impl FnOnce(Part) -> F)
where
    F: Future<Output: Send> + Send + 'static,
{
    let _limit = time_limit();
    let lanes = two_threads();
    let (part, awaits) = Part::new();
    let job = lanes.cpu.spawn(work(part));
    awaits.recv().unwrap();
    lanes.cpu.shutdown_background();
    let error = job.wait().err().expect("it has lost a part");
    assert_eq!(error.kind(), JoinErrorKind::Shutdown, "{error}");
    let metrics = lanes.cpu.handle().metrics();
    let ended = (metrics.completed, metrics.panicked, metrics.dropped);
    assert_eq!(ended, (0, 0, 1));
    assert_eq!((metrics.running, metrics.suspended), (0, 0));
}

#[test]
fn a_job_that_returns_the_error_of_a_part_is_shut_down() {
    is_shut_down(|part| in_cpu_context(part.spawn_and_join()));
}

#[test]
fn so_is_one_that_panics_for_it() {
    is_shut_down(|part| in_cpu_context(async { part.spawn_and_join().await.unwrap() }));
}

#[test]
fn so_is_one_that_awaits_the_part_elsewhere() {
    is_shut_down(|part| async move {
        let (spawned, part) = in_cpu_context(async { (part.spawn(), part) }).await;
        // The next step.
        twolane::yield_now().await;
        part.join(spawned).await
    });
}

/// Its output is what it makes of the shutdown.
#[test]
fn a_closure_returns_what_it_returns() {
    let _limit = time_limit();
    let lanes = two_threads();
    let (part, awaits) = Part::new();
    let job = lanes
        .cpu
        .spawn_cpu(|| futures::executor::block_on(in_cpu_context(part.spawn_and_join())));
    awaits.recv().unwrap();
    lanes.cpu.shutdown_background();
    assert!(job.wait().unwrap().unwrap_err().is_cancelled());
}

/// A reader must not take it for the end.
fn is_cut<T: Send + 'static>(read: fn(&Handle, Part) -> Result<usize, T>) {
    let _limit = time_limit();
    let lanes = two_threads();
    let (part, awaits) = Part::new();
    let handle = lanes.cpu.handle();
    let reader = std::thread::spawn(move || read(&handle, part));
    awaits.recv().unwrap();
    lanes.cpu.shutdown_background();
    assert!(reader.join().unwrap().is_err());
}

#[test]
fn a_stream_that_ends_because_of_it_is_an_error() {
    is_cut(|cpu, part| {
        let stream = in_cpu_context(part.into_stream());
        let items = cpu.stream_from_cpu(stream, 1, |_| 1);
        let items: Vec<_> = block_on_stream(Box::pin(items)).collect();
        items
            .into_iter()
            .collect::<Result<Vec<u8>, _>>()
            .map(|all| all.len())
    });
}

#[test]
fn so_is_a_source_of_a_stream_that_computes() {
    is_cut(|cpu, part| {
        let source = in_cpu_context(part.into_stream());
        let items = source.on_cpu(cpu).source_on_cpu().map(|item: u8| item);
        let items = items.buffered(1);
        let items: Vec<_> = block_on_stream(items).collect();
        items
            .into_iter()
            .collect::<Result<Vec<u8>, JoinError>>()
            .map(|all| all.len())
    });
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
            twolane::yield_now().await;
        }
        awaits.send(()).unwrap();
        is_dropped.recv().unwrap();
        receiver.recv().await
    };
    stream::iter([1]).chain(stream::once(rest).filter_map(async |item| item))
}

/// A channel ends like a complete one when the job that sends is dropped. The reader of
/// a stream took that for the end.
#[test]
fn a_stream_that_ends_with_a_job_of_its_lane_is_an_error() {
    for computes in [false, true] {
        on_both(2, |lanes| {
            let cpu = lanes.cpu.handle();
            let (awaits, is_awaiting) = mpsc::channel();
            let (read, is_read) = mpsc::channel();
            let source = reads_of_a_job(&cpu, awaits, is_read);
            let reader = std::thread::spawn(move || {
                let mut is_cut = false;
                let mut look = |is_ok: bool| {
                    is_cut |= !is_ok;
                    let _ = read.send(());
                };
                if computes {
                    let source = source.on_cpu(&cpu).source_on_cpu().map(|item| item);
                    let items = source.buffered(1);
                    block_on_stream(items).for_each(|item| look(item.is_ok()));
                } else {
                    let items = cpu.stream_from_cpu(source, 9, |_| 1);
                    block_on_stream(Box::pin(items)).for_each(|item| look(item.is_ok()));
                }
                is_cut
            });
            is_awaiting.recv().unwrap();
            lanes.cpu.shutdown_background();
            assert!(reader.join().unwrap(), "computes: {computes}");
        });
    }
}
