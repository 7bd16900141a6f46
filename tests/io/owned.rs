//! A value that lives on the I/O lane: how its owner uses it there.

use std::cell::Cell;
use std::future::{Future, Ready, pending};
use std::pin::pin;
use std::sync::{Arc, mpsc};

use crate::stepped::{Stepped, wait};
use crate::support::{Dropped, Lanes, cpu_lane, lanes, thread_name};
use futures::future::{join_all, select};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::{Barrier, oneshot};
use twolane::io::SendAsyncFnOnce;
use twolane::{HandleExt, IoOwned, IoShared, JoinError};

/// Polls a call until it has begun, and drops it then.
async fn abort_when_begun<F: Future>(call: F, begun: oneshot::Receiver<()>) {
    select(pin!(call), begun).await;
}

/// All of it is written as a user writes it: without a type, a box or a pin.
#[test]
fn a_job_uses_a_value_on_the_io_lane() {
    let Lanes { cpu, io: _io } = lanes(1);
    let job = cpu.spawn(async {
        let make = async { IoOwned::new(vec![thread_name()]) };
        let mut names = twolane::spawn_io(make).await?;
        let text = String::from("captured");
        let len = names.with(async move |names| {
            names.push(text);
            tokio::task::yield_now().await;
            names.push(thread_name());
            names.len()
        });
        assert_eq!(len.await?, 3);
        // A value that comes of another.
        let first = names
            .with(async |names| IoOwned::new(names.remove(0)))
            .await?;
        let first = first.take(async |first| (first, thread_name())).await?;
        let rest = names.take(async |names| names).await?;
        Ok::<_, JoinError>((first, rest))
    });
    let io = || "io".to_owned();
    let (first, rest) = job.wait().unwrap().unwrap();
    assert_eq!(first, (io(), io()));
    assert_eq!(rest, ["captured".to_owned(), io()]);
}

async fn twice<T, R, F>(value: &mut IoOwned<T>, f: F) -> Result<[R; 2], JoinError>
where
    T: Send + 'static,
    R: Send + 'static,
    F: AsyncFnOnce(&mut T) -> R + for<'a> SendAsyncFnOnce<'a, T, R> + Copy + Send + 'static,
{
    Ok([value.with(f).await?, value.with(f).await?])
}

async fn pop(numbers: &mut Vec<u8>) -> Option<u8> {
    numbers.pop()
}

/// Whatever is callable with a `&mut T` and returns a `Send` future, also in a job that
/// has to be `Send`, in a function over all types, and with a value that is not `Sync`.
#[test]
fn any_async_function_can_be_called() {
    let Lanes { cpu, io: _io } = lanes(1);
    let mut numbers = cpu.handle().io_owned(vec![1, 2, 3, 4, 5, 6]);
    let job = cpu.spawn(async move {
        let of_function = twice(&mut numbers, pop).await?;
        let of_closure = twice(&mut numbers, async |numbers| pop(numbers).await).await?;
        let last = twice(&mut numbers, pop).await?[1];
        let mut cell = IoOwned::new(Cell::new(last));
        let of_cell = cell.with(async |cell| cell.take()).await?;
        Ok::<_, JoinError>((of_function, of_closure, of_cell))
    });
    let read = job.wait().unwrap().unwrap();
    assert_eq!(read, ([Some(6), Some(5)], [Some(4), Some(3)], Some(1)));
}

/// A timeout around a call, as every client's user writes it.
#[test]
fn the_call_after_an_aborted_one_begins_after_its_drop() {
    struct Using<'a>(&'a mut Vec<&'static str>);
    impl Drop for Using<'_> {
        fn drop(&mut self) {
            assert_eq!(thread_name(), "io");
            self.0.push("dropped");
        }
    }
    let Lanes { cpu, io: _io } = lanes(1);
    let mut notes = cpu.handle().io_owned(Vec::new());
    let job = cpu.spawn(async move {
        for _ in 0..100 {
            let (begun, begins) = oneshot::channel();
            let call = notes.with(async move |notes| {
                notes.push("begun");
                let _using = Using(notes);
                begun.send(()).unwrap();
                pending::<()>().await;
            });
            abort_when_begun(call, begins).await;
            notes.with(async |notes| notes.push("next")).await.unwrap();
        }
        notes.take(async |notes| notes).await
    });
    let notes = job.wait().unwrap().unwrap();
    let expected = ["begun", "dropped", "next"].repeat(100);
    assert_eq!(notes, expected);
}

/// Not even one that the I/O lane had no time to begin may run after a later call: it
/// would write what its owner has given up.
#[test]
fn a_call_that_was_aborted_before_its_begin_never_runs() {
    let lane = Stepped::new();
    let (dropped, drops) = mpsc::channel();
    let mut notes = lane.cpu.handle().io_owned((Vec::new(), Dropped(dropped)));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    for text in ["first", "second"] {
        let mut aborted = pin!(notes.with(async move |notes| notes.0.push(text)));
        assert!(aborted.as_mut().poll(&mut cx).is_pending());
    }
    let mut third = Box::pin(notes.with(async |notes| {
        notes.0.push("third");
        notes.0.clone()
    }));
    assert!(third.as_mut().poll(&mut cx).is_pending());
    lane.until_idle();
    assert_eq!(wait(third).unwrap(), ["third"]);

    // The drop comes last, too.
    let mut aborted = Box::pin(notes.with(async |_| unreachable!("was aborted")));
    assert!(aborted.as_mut().poll(&mut cx).is_pending());
    drop(aborted);
    drop(notes);
    assert!(drops.try_recv().is_err());
    lane.until_idle();
    assert_eq!(drops.recv().unwrap(), thread_name());
}

fn panics_at_once(_notes: &mut Vec<&'static str>) -> Ready<()> {
    panic!("at once");
}

/// On the I/O lane itself, Tokio polls the task first that was spawned last. That is the
/// one that drops the value.
#[test]
fn the_order_of_the_polls_does_not_matter() {
    let io = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    let cpu = cpu_lane(1, io.handle());
    let read = cpu.handle().spawn_io(async {
        let numbers = IoOwned::new(vec![1, 2]);
        numbers.into_stream(|numbers| stream::iter(numbers.drain(..)).boxed(), 8, |_| 1)
    });
    let numbers = read.wait().unwrap().try_collect::<Vec<_>>();
    assert_eq!(wait(numbers).unwrap(), [1, 2]);
}

/// As with Tokio's mutex: what a panic left half-done is the owner's to judge.
#[test]
fn a_panic_reaches_the_caller_and_leaves_the_value() {
    let Lanes { cpu, io: _io } = lanes(1);
    let mut notes = cpu.handle().io_owned(Vec::new());
    let job = cpu.spawn(async move {
        let error = notes.with(async |notes| {
            notes.push("before");
            tokio::task::yield_now().await;
            panic!("half-way");
        });
        let error: JoinError = error.await.unwrap_err();
        assert!(error.is_panic() && error.to_string().ends_with("half-way"));
        // In the closure itself, before there is a future.
        let error = notes.with(panics_at_once).await;
        assert!(error.unwrap_err().is_panic());
        notes.with(async |notes| notes.clone()).await.unwrap()
    });
    assert_eq!(job.wait().unwrap(), ["before"]);
}

#[test]
fn a_value_needs_the_io_lane_alone() {
    let Lanes { cpu, io: _io } = lanes(1);
    let mut value = cpu.handle().io_owned(1);
    let shared = cpu.handle().io_owned(2).shared();
    assert!(cpu.shutdown().wait().is_empty());
    assert_eq!(wait(value.with(async |value| *value)).unwrap(), 1);
    assert_eq!(wait(shared.with(async |value| value)).unwrap(), 2);
    let numbers = value.stream(|value| stream::iter([*value, 3]).boxed(), 1, |_| 1);
    assert_eq!(wait(numbers.try_collect::<Vec<_>>()).unwrap(), [1, 3]);
    assert_eq!(wait(value.take(async |value| value)).unwrap(), 1);
}

/// Rows under a transaction: the table is the job's again after them.
#[test]
fn a_stream_borrows_the_value_and_gives_it_back() {
    let Lanes { cpu, io: _io } = lanes(1);
    let mut table = cpu.handle().io_owned((0..100).collect::<Vec<_>>());
    let job = cpu.spawn(async move {
        let evens = table.stream(
            |table| {
                assert_eq!(thread_name(), "io");
                stream::iter(table.iter().copied().filter(|n| n % 2 == 0)).boxed()
            },
            3,
            |_| 1,
        );
        assert_eq!(evens.count().await, 50);
        // Dropped half-way: the rest is not drained before the next call, but dropped.
        let mut all = table.stream(|table| stream::iter(table.drain(..)).boxed(), 1, |_| 1);
        assert_eq!(all.next().await.unwrap().unwrap(), 0);
        drop(all);
        assert_eq!(table.with(async |table| table.len()).await.unwrap(), 0);

        let mut broken = table.stream(
            |_| -> stream::BoxStream<'_, u8> { panic!("no table") },
            1,
            |_| 1,
        );
        let error = broken.next().await.unwrap().unwrap_err();
        assert!(
            error.is_panic() && error.to_string().ends_with("no table"),
            "{error}"
        );
        assert!(broken.next().await.is_none());
        drop(broken);
        table.with(async |table| table.push(7)).await.unwrap();
        table.take(async |table| table).await.unwrap()
    });
    assert_eq!(job.wait().unwrap(), [7]);
}

/// Not `Sync`.
struct Client(Arc<Dropped>, Cell<()>);

impl Clone for Client {
    fn clone(&self) -> Self {
        assert_eq!(thread_name(), "io");
        Self(self.0.clone(), Cell::new(()))
    }
}

/// Ten jobs with one client. The barrier opens once all ten are inside, each with its clone.
#[test]
fn the_users_of_a_shared_value_run_at_the_same_time() {
    let Lanes { cpu, io: _io } = lanes(2);
    let (dropped, drops) = mpsc::channel();
    let client = Client(Arc::new(Dropped(dropped)), Cell::new(()));
    let client: IoShared<_> = cpu.handle().io_owned(client).shared();
    let all_inside = Arc::new(Barrier::new(10));
    let jobs = (0..10).map(|n| {
        let (client, all_inside) = (client.clone(), all_inside.clone());
        cpu.spawn(async move {
            let call = client.with(async move |client| {
                all_inside.wait().await;
                let clones = Arc::strong_count(&client.0) - 1;
                all_inside.wait().await;
                (n, clones)
            });
            call.await.unwrap()
        })
    });
    let jobs: Vec<_> = jobs.collect();
    drop(client);
    let read = wait(join_all(jobs)).into_iter().map(Result::unwrap);
    assert!(read.eq((0..10).map(|n| (n, 10))));
    assert_eq!(drops.recv().unwrap(), "io");
}

/// A call of a shared value that is given up, or that panics, is nothing to the others.
#[test]
fn the_users_of_a_shared_value_end_each_on_its_own() {
    let Lanes { cpu, io: _io } = lanes(1);
    let (dropped, drops) = mpsc::channel();
    let client = cpu.handle().io_owned(Arc::new(Dropped(dropped))).shared();
    let job = cpu.spawn(async move {
        let (begun, begins) = oneshot::channel();
        let call = client.with(async move |_client| {
            begun.send(()).unwrap();
            pending::<()>().await;
        });
        abort_when_begun(call, begins).await;
        let panics = client.with(async |_client| panic!("of one call")).await;
        assert!(panics.unwrap_err().is_panic());
        client
            .with(async |client| Arc::strong_count(&client) >= 2)
            .await
    });
    assert!(job.wait().unwrap().unwrap());
    assert_eq!(drops.recv().unwrap(), "io");
}

#[test]
fn without_a_handle_a_value_has_no_lane() {
    let made = std::panic::catch_unwind(|| IoOwned::new(1));
    let text = *made.unwrap_err().downcast::<String>().unwrap();
    assert!(text.starts_with("no current twolane handle"), "{text}");
}
