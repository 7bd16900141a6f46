//! Many tasks at once, with what the ecosystem has for many futures: is that all
//! that Tokio's `JoinSet` gives?

use std::error::Error;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;

use crate::support::wait::wait_until;
use crate::support::{Dropped, Stuck, on_both};
use futures::channel::oneshot;
use futures::executor::block_on;
use futures::future::{FutureExt, try_join_all};
use futures::poll;
use futures::stream::{FuturesUnordered, StreamExt, TryStreamExt};
use twolane::{Handle, Task};

/// A closure that runs until it is cancelled, and tells so; then it keeps its thread
/// until it is let go, so that what is queued behind it stays there.
struct Spinning {
    task: Task<u32>,
    seen: mpsc::Receiver<()>,
    let_go: mpsc::Sender<()>,
}

impl Spinning {
    fn start(cpu: &Handle) -> Self {
        let (started, running) = mpsc::channel();
        let (sees, seen) = mpsc::channel();
        let (let_go, wait) = mpsc::channel();
        let task = cpu.spawn_cpu_with(move |job| {
            started.send(()).unwrap();
            wait_until(|| job.checkpoint().is_err());
            sees.send(()).unwrap();
            wait.recv().unwrap();
            Ok(0)
        });
        running.recv().unwrap();
        Self { task, seen, let_go }
    }
}

/// A future that waits for ever, and tells where it is dropped.
fn suspend(cpu: &Handle) -> (Task<u32>, mpsc::Receiver<String>) {
    let (started, running) = mpsc::channel();
    let (dropped, drops) = mpsc::channel();
    let dropped = Dropped(dropped);
    let task = cpu.spawn(async move {
        let _dropped = dropped;
        started.send(()).unwrap();
        pending().await
    });
    running.recv().unwrap();
    (task, drops)
}

/// As `JoinSet::join_next`: whichever ends first comes first. And `len`.
#[test]
fn results_as_they_come() {
    on_both(3, |lanes| {
        let (tasks, ends): (Vec<_>, Vec<_>) = (0..3)
            .map(|_| Stuck::start(&lanes.cpu.handle()).split())
            .unzip();
        let mut tasks: FuturesUnordered<_> = tasks.into_iter().collect();
        block_on(async {
            for (left, n) in [(3, 2), (2, 0), (1, 1)] {
                assert_eq!(tasks.len(), left);
                assert!(poll!(tasks.next()).is_pending());
                ends[n].send(n).unwrap();
                assert_eq!(tasks.next().await.unwrap().unwrap(), n);
            }
            assert!(tasks.is_empty() && tasks.next().await.is_none());
            // It may grow again.
            tasks.push(lanes.cpu.spawn_cpu(|| 3));
            assert_eq!(tasks.next().await.unwrap().unwrap(), 3);
        });
    });
}

/// Dropped or cleared, it cancels all that are in it, as `JoinSet` does when it is
/// dropped or told to `abort_all`.
#[test]
fn without_the_collection_nothing_goes_on() {
    for is_dropped in [false, true] {
        on_both(1, |lanes| {
            let cpu = lanes.cpu.handle();
            let ran = Arc::new(AtomicUsize::new(0));
            let mut tasks = FuturesUnordered::new();
            let (suspended, drops) = suspend(&cpu);
            let spinning = Spinning::start(&cpu);
            tasks.extend([suspended, spinning.task]);
            for _ in 0..50 {
                let (by_closure, by_future) = (ran.clone(), ran.clone());
                tasks.push(cpu.spawn_cpu(move || by_closure.fetch_add(1, SeqCst) as u32));
                tasks.push(cpu.spawn(async move { by_future.fetch_add(1, SeqCst) as u32 }));
            }
            // One that was polled is in it in another way than one that was not.
            assert!(block_on(async { poll!(tasks.next()) }).is_pending());
            if is_dropped {
                drop(tasks);
            } else {
                tasks.clear();
                assert!(tasks.is_empty());
            }
            // The closure has seen it, the suspended future was dropped on its lane,
            // and what was queued is passed over.
            spinning.seen.recv().unwrap();
            spinning.let_go.send(()).unwrap();
            assert!(drops.recv().unwrap().starts_with("cpu-"));
            cpu.spawn_cpu(|| ()).wait().unwrap();
            assert_eq!(ran.load(SeqCst), 0);
            let metrics = cpu.metrics();
            // The closure went on to its end; the last one is from here.
            assert_eq!((metrics.cancelled, metrics.completed), (101, 2));
        });
    }
}

/// One panics: its own result says so, with the payload, and the rest is there.
#[test]
fn a_panic_is_one_result_of_many() {
    on_both(2, |lanes| {
        let job = |n: u32| {
            lanes.cpu.spawn_cpu(move || match n % 4 {
                // Without a word to the panic hook.
                3 => std::panic::resume_unwind(Box::new(n)),
                _ => n,
            })
        };
        let tasks: FuturesUnordered<_> = (0..100).map(job).collect();
        let results: Vec<_> = block_on(tasks.collect());
        let mut numbers: Vec<_> = results
            .into_iter()
            .map(|result| {
                result.unwrap_or_else(|panic| *panic.into_panic().downcast::<u32>().unwrap())
            })
            .collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..100));
    });
}

/// `try_join_all` and `try_collect` drop the rest at the first error, and so cancel
/// it. Both kinds of error are one to them, by `??`.
#[test]
fn the_first_error_cancels_the_rest() {
    for (by_panic, by_collect) in [(false, false), (false, true), (true, false), (true, true)] {
        on_both(1, |lanes| {
            let cpu = lanes.cpu.handle();
            let ran = Arc::new(AtomicUsize::new(0));

            let (suspended, drops) = suspend(&cpu);
            let spinning = Spinning::start(&cpu);
            // Where it ends no thread comes free.
            let (fail, told) = oneshot::channel();
            let fails = cpu.spawn_io(async move {
                told.await.unwrap();
                match by_panic {
                    true => std::panic::resume_unwind(Box::new("the only one")),
                    false => Err::<u32, _>("the only one"),
                }
            });
            let queued = (0..8).map(|_| {
                let ran = ran.clone();
                cpu.spawn_cpu(move || ran.fetch_add(1, SeqCst) as u32)
            });
            let joins: Vec<_> = [suspended, spinning.task]
                .into_iter()
                .chain(queued)
                .map(|task| async { Ok::<_, BoxError>(task.await?) }.boxed())
                .chain([async { Ok(fails.await??) }.boxed()])
                .collect();

            let joined = async {
                match by_collect {
                    // Not `FuturesOrdered`: there it would have to be its turn.
                    true => {
                        joins
                            .into_iter()
                            .collect::<FuturesUnordered<_>>()
                            .try_collect()
                            .await
                    }
                    false => try_join_all(joins).await,
                }
            };
            let error = block_on(async {
                let mut joined = pin!(joined);
                assert!(poll!(&mut joined).is_pending());
                fail.send(()).unwrap();
                let outputs: Result<Vec<u32>, _> = joined.await;
                outputs.unwrap_err().to_string()
            });
            assert!(error.ends_with("the only one"), "{error}");
            spinning.seen.recv().unwrap();
            spinning.let_go.send(()).unwrap();
            assert!(drops.recv().unwrap().starts_with("cpu-"));
            cpu.spawn_cpu(|| ()).wait().unwrap();
            assert_eq!(ran.load(SeqCst), 0);
        });
    }
}

type BoxError = Box<dyn Error + Send + Sync>;
