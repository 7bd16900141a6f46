//! Many tasks of one source: how far is it read ahead of what the lane can take?

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::task::Poll;

use crate::support::{BOTH, Stuck, lanes, time_limit};
use futures::executor::block_on;
use futures::poll;
use futures::stream::{self, FuturesOrdered, StreamExt, TryStreamExt};
use twolane::{CpuRuntime, JoinError, Priority};

fn limited_lane(
    backend: twolane::Backend,
    threads: usize,
    queue_limit: usize,
) -> (CpuRuntime, tokio::runtime::Runtime) {
    let io = tokio::runtime::Runtime::new().unwrap();
    let cpu = CpuRuntime::builder()
        .backend(backend)
        .worker_threads(threads)
        .queue_limit(Priority::Normal, queue_limit)
        .io_handle(io.handle().clone())
        .build()
        .unwrap();
    (cpu, io)
}

/// `buffer_unordered(n)`, and `buffered(n)` in order: no more than n are submitted
/// and not awaited, and the source is read no further.
#[test]
fn a_buffer_bounds_what_is_in_flight() {
    const AT_ONCE: usize = 4;
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 2);
        let cpu = lanes.cpu.handle();
        let read = AtomicUsize::new(0);
        let (stuck, let_go) = Stuck::start(&cpu).split();
        let mut stuck = Some(stuck);
        // The first is stuck, the others end.
        let source = stream::iter(0..20_usize).inspect(|_| {
            read.fetch_add(1, SeqCst);
        });
        let jobs = source.map(|n| stuck.take().unwrap_or_else(|| cpu.spawn_cpu(move || n)));
        let mut results = jobs.buffer_unordered(AT_ONCE);
        assert_eq!(read.load(SeqCst), 0);
        block_on(async {
            let mut outputs = Vec::new();
            while outputs.len() < 19 {
                outputs.push(results.next().await.unwrap().unwrap());
                // What was given out is no longer in flight.
                assert!(read.load(SeqCst) < outputs.len() + AT_ONCE);
            }
            // The stuck one holds no other up, and is not lost.
            assert!(poll!(results.next()).is_pending());
            let_go.send(0).unwrap();
            outputs.push(results.next().await.unwrap().unwrap());
            assert!(results.next().await.is_none());
            assert_eq!(outputs[19], 0);
            outputs.sort_unstable();
            assert!(outputs.into_iter().eq(0..20));
        });
        assert!(cpu.metrics().submitted == 20 && read.load(SeqCst) == 20);
    }
}

/// `buffered` gives the results in order: a stuck first one stops the source.
#[test]
fn an_ordered_buffer_stops_the_source() {
    const AT_ONCE: usize = 4;
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 2);
        let cpu = lanes.cpu.handle();
        let read = AtomicUsize::new(0);
        let (stuck, let_go) = Stuck::start(&cpu).split();
        let mut stuck = Some(stuck);
        let source = stream::iter(0..20_usize).inspect(|_| {
            read.fetch_add(1, SeqCst);
        });
        let jobs = source.map(|n| stuck.take().unwrap_or_else(|| cpu.spawn_cpu(move || n)));
        let mut results = jobs.buffered(AT_ONCE);
        block_on(async {
            assert!(poll!(results.next()).is_pending());
            assert_eq!(read.load(SeqCst), AT_ONCE);
            let_go.send(0).unwrap();
            let outputs: Vec<_> = results.try_collect().await.unwrap();
            assert!(outputs.into_iter().eq(0..20));
        });
    }
}

/// `reserve` bounds by the lane's limit, beside other submitters: one that takes the permit
/// first and reads then has nothing in hand that the lane can't take.
#[test]
fn admission_stops_the_source() {
    const LIMIT: usize = 3;
    let _limit = time_limit();
    for backend in BOTH {
        let (cpu, _io) = limited_lane(backend, 1, LIMIT);
        let cpu = cpu.handle();
        let read = AtomicUsize::new(0);
        let (let_go, gates): (Vec<_>, Vec<_>) = (0..10).map(|_| mpsc::channel()).unzip();
        let mut source = stream::iter(gates).inspect(|_| {
            read.fetch_add(1, SeqCst);
        });
        let submit_all = async {
            let mut tasks = FuturesOrdered::new();
            loop {
                let permit = cpu.reserve().await?;
                let Some(gate) = source.next().await else {
                    break Ok::<_, JoinError>(tasks);
                };
                tasks.push_back(permit.spawn_cpu(move || gate.recv().unwrap()));
            }
        };
        let mut submit_all = pin!(submit_all);
        for (n, end) in let_go.iter().enumerate() {
            // Until the lane is full again. The place that came free wakes it.
            let full = LIMIT + n;
            let submitted = block_on(poll_fn(|cx| {
                let polled = submit_all.as_mut().poll(cx);
                assert!(read.load(SeqCst) <= full, "it reads ahead");
                match polled {
                    Poll::Ready(tasks) => Poll::Ready(Some(tasks)),
                    Poll::Pending if read.load(SeqCst) == full => Poll::Ready(None),
                    Poll::Pending => Poll::Pending,
                }
            }));
            // Others are told that it is full.
            assert_eq!(submitted.is_none(), cpu.try_reserve().is_err());
            if let Some(tasks) = submitted {
                // The last ones are in.
                assert_eq!(read.load(SeqCst), 10);
                let_go[n..]
                    .iter()
                    .enumerate()
                    .for_each(|(i, end)| end.send(n + i).unwrap());
                let outputs: Vec<_> = block_on(tasks.unwrap().try_collect()).unwrap();
                assert!(outputs.into_iter().eq(0..10));
                break;
            }
            end.send(n).unwrap();
        }
        assert_eq!(cpu.metrics().completed, 10);
    }
}

/// Both: a buffer whose jobs come in by permits. Other submitters fill the queue,
/// and nothing is refused.
#[test]
fn a_buffer_of_admitted_jobs() {
    let _limit = time_limit();
    for backend in BOTH {
        let (cpu, _io) = limited_lane(backend, 2, 2);
        let cpu = &cpu.handle();
        let results = stream::iter(0..200_u32)
            .map(|n| async move { cpu.reserve().await?.spawn_cpu(move || n).await })
            .buffer_unordered(8);
        let mut outputs: Vec<_> = block_on(results.try_collect()).unwrap();
        outputs.sort_unstable();
        assert!(outputs.into_iter().eq(0..200));
        assert_eq!(cpu.metrics().rejected, 0);
    }
}
