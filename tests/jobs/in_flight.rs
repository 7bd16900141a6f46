//! Many tasks of one source: how far is it read ahead of what the lane can take?

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::task::Poll;

use crate::support::{lanes_with, with_both};
use futures::executor::block_on;
use futures::stream::{self, FuturesOrdered, StreamExt, TryStreamExt};
use twolane::{JoinError, Priority};

/// `reserve` bounds by the lane's limit, beside other submitters: one that takes the permit
/// first and reads then has nothing in hand that the lane can't take.
#[test]
fn admission_stops_the_source() {
    const LIMIT: usize = 3;
    with_both(|backend| {
        let lanes = lanes_with(backend, 1, |it| it.queue_limit(Priority::Normal, LIMIT));
        let cpu = lanes.cpu.handle();
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
    });
}

/// Both: a buffer whose jobs come in by permits. Other submitters fill the queue,
/// and nothing is refused.
#[test]
fn a_buffer_of_admitted_jobs() {
    with_both(|backend| {
        let lanes = lanes_with(backend, 2, |it| it.queue_limit(Priority::Normal, 2));
        let cpu = &lanes.cpu.handle();
        let results = stream::iter(0..200_u32)
            .map(|n| async move { cpu.reserve().await?.spawn_cpu(move || n).await })
            .buffer_unordered(8);
        let mut outputs: Vec<_> = block_on(results.try_collect()).unwrap();
        outputs.sort_unstable();
        assert!(outputs.into_iter().eq(0..200));
        assert_eq!(cpu.metrics().rejected, 0);
    });
}
