//! Many tasks at once, with what the ecosystem has for many futures: does the rest end with the
//! first error? (A task that is dropped is cancelled, whatever collection drops it: `model`.)

use std::error::Error;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;

use crate::support::wait::wait_until;
use crate::support::{Dropped, lanes, nothing};
use futures::channel::oneshot;
use futures::executor::block_on;
use futures::future::{FutureExt, try_join_all};
use futures::poll;
use futures::stream::{FuturesUnordered, TryStreamExt};

/// `try_join_all` and `try_collect` drop the rest at the first error, and so cancel
/// it. Both kinds of error are one to them, by `??`.
#[test]
fn the_first_error_cancels_the_rest() {
    for (by_panic, by_collect) in [(false, false), (false, true), (true, false), (true, true)] {
        let (cpu, _lanes) = lanes(1).and_handle();
        let ran = Arc::new(AtomicUsize::new(0));

        let (began, begins) = mpsc::channel();
        let (dropped, drops) = mpsc::channel();
        let (starts, dropped) = (began.clone(), Dropped(dropped));
        let suspended = cpu.spawn(async move {
            let _dropped = dropped;
            starts.send(()).unwrap();
            pending().await
        });
        // It runs until it is cancelled, and tells so. Then it keeps its thread until it is
        // let go, so that what is queued behind it stays there.
        let (sees, seen) = mpsc::channel();
        let (let_go, wait) = mpsc::channel();
        let spinning = cpu.spawn_cpu_with(move |job| {
            began.send(()).unwrap();
            wait_until(|| job.checkpoint().is_err());
            sees.send(()).unwrap();
            wait.recv().unwrap();
            Ok(0)
        });
        begins.iter().take(2).for_each(drop);
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
        let joins: Vec<_> = [suspended, spinning]
            .into_iter()
            .chain(queued)
            .map(|task| async { Ok::<_, BoxError>(task.await?) }.boxed())
            .chain([async { Ok(fails.await??) }.boxed()])
            .collect();

        let joined = async {
            match by_collect {
                // Not `FuturesOrdered`: there it would have to be its turn.
                true => FuturesUnordered::from_iter(joins).try_collect().await,
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
        seen.recv().unwrap();
        let_go.send(()).unwrap();
        assert!(drops.recv().unwrap().starts_with("cpu-"));
        cpu.spawn_cpu(nothing).wait().unwrap();
        assert_eq!(ran.load(SeqCst), 0);
    }
}

type BoxError = Box<dyn Error + Send + Sync>;
