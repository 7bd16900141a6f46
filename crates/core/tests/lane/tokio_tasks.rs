//! A job that has parts, which it spawns with `tokio::spawn` inside `in_cpu_context`, runs beside them.

use std::future::{Future, poll_fn};
use std::sync::mpsc;
use std::task::Poll;

use crate::support::busy::Busy;
use crate::support::{lanes, lanes_with, thread_name};
use twolane_core::{JoinErrorKind, Priority, in_cpu_context};

/// The threads of its two first polls, and of a part that wakes it in between.
pub(crate) fn beside_its_part() -> impl Future<Output = [String; 3]> {
    let (mut threads, mut wait) = (Vec::new(), None::<mpsc::Receiver<String>>);
    in_cpu_context(poll_fn(move |cx| {
        threads.push(thread_name());
        if let [first, second] = &threads[..] {
            let part = wait.take().unwrap().recv().unwrap();
            return Poll::Ready([first.clone(), second.clone(), part]);
        }
        let (waker, (tell, told)) = (cx.waker().clone(), mpsc::channel());
        wait = Some(told);
        tokio::spawn(async move {
            tell.send(thread_name()).unwrap();
            waker.wake();
        });
        Poll::Pending
    }))
}

#[test]
fn a_job_runs_where_its_parts_are() {
    let lanes = lanes(1);
    for (priority, worker, runtime) in [
        (Priority::High, "cpu-high-0", "cpu-high-tokio-0"),
        (Priority::Normal, "cpu-0", "cpu-tokio-0"),
        (Priority::Low, "cpu-low-0", "cpu-low-tokio-0"),
    ] {
        let cpu = lanes.cpu.handle().with_priority(priority);
        let found = cpu.spawn(beside_its_part()).wait().unwrap();
        assert_eq!(found, [runtime; 3]);
        // What has no parts stays.
        let woken = async {
            twolane_core::spawn_io(async {})
                .await
                .map(|()| thread_name())
        };
        assert_eq!(cpu.spawn(woken).wait().unwrap().unwrap(), worker);
    }
}

/// It keeps its permit, it is counted as any job, and it ends with its lane.
#[test]
fn there_it_is_a_job_still() {
    let (cpu, lanes) = lanes_with(1, |lane| {
        lane.queue_limit(Priority::Normal, 1).histograms(true)
    })
    .and_handle();
    let (go_on, waits) = tokio::sync::oneshot::channel();
    let (tell, told) = mpsc::channel();
    let job = cpu.spawn(in_cpu_context(async move {
        beside_its_part().await;
        tell.send(()).unwrap();
        let steps: u32 = waits.await.unwrap();
        for _ in 0..steps {
            twolane_core::yield_now().await;
        }
        thread_name()
    }));
    told.recv().unwrap();
    let full = cpu.try_reserve().unwrap_err();
    assert_eq!(full.kind(), JoinErrorKind::QueueFull);
    go_on.send(100).unwrap();
    assert_eq!(job.wait().unwrap(), "cpu-tokio-0");
    let now = cpu.metrics();
    let ended = (now.submitted, now.completed, now.permits_in_use);
    assert_eq!(ended, (1, 1, 0));
    assert_eq!((now.queued, now.running, now.suspended), (0, 0, 0));
    let steps = now.run_time.count();
    assert!(steps > 100, "{steps}");
    let (tell, told) = mpsc::channel();
    let endless = cpu.spawn(in_cpu_context(async move {
        beside_its_part().await;
        tell.send(()).unwrap();
        loop {
            twolane_core::yield_now().await;
        }
    }));
    told.recv().unwrap();
    assert!(lanes.cpu.shutdown().wait().is_empty());
    let ended: Result<(), _> = endless.wait();
    assert_eq!(ended.unwrap_err().kind(), JoinErrorKind::Shutdown);
}

/// What a future spawns in the CPU context gets its turn in a lane that is never empty.
#[test]
fn tokios_own_tasks_get_their_turn() {
    let lanes = lanes(1);
    // When one runs, the other is queued.
    let _busy = Busy::with(2, lanes.cpu.handle());
    let (had, has_had) = mpsc::channel();
    let spawns = async move {
        tokio::spawn(async move {
            // Else it would be polled next, from the LIFO slot.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            had.send(()).unwrap();
        });
    };
    lanes.cpu.spawn(in_cpu_context(spawns)).wait().unwrap();
    has_had.recv().unwrap();
}

/// Outside of the wrapper the current runtime is the I/O lane's, and Tokio gives the worker, the only one, to
/// one of its threads.
#[test]
fn a_worker_that_a_job_gave_away_comes_back() {
    let lanes = lanes(1);
    for _ in 0..100 {
        let (done, is_done) = mpsc::channel();
        let blocks = lanes.cpu.spawn(async move {
            beside_its_part().await;
            tokio::task::block_in_place(|| is_done.recv().unwrap());
            thread_name()
        });
        let later = lanes.cpu.spawn(async move {
            let threads = beside_its_part().await;
            done.send(()).unwrap();
            threads
        });
        let [first, second, part] = later.wait().unwrap();
        for name in [first, second, blocks.wait().unwrap()] {
            assert!(name.starts_with("cpu-tokio-"), "{name}");
        }
        assert!(part.starts_with("cpu-tokio-") || part == "io", "{part}");
    }
    assert!(lanes.cpu.shutdown().wait().is_empty());
}

/// It waited for ever.
#[test]
fn a_closure_that_needs_the_runtime_of_a_closed_lane_ends() {
    let lanes = lanes(1);
    let (let_go, wait) = mpsc::channel::<()>();
    let (begins, begun) = mpsc::channel();
    let job = lanes.cpu.spawn_cpu(move || {
        begins.send(()).unwrap();
        let _ = wait.recv();
        futures::executor::block_on(in_cpu_context(async {}));
    });
    begun.recv().unwrap();
    lanes.cpu.shutdown_background();
    drop(let_go);
    assert_eq!(job.wait().unwrap_err().kind(), JoinErrorKind::Shutdown);
    assert!(lanes.cpu.shutdown().wait().is_empty());
}
