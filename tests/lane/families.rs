//! What a job submits goes in by the job's own permit: so recursion never waits for
//! itself, and the permit is free when the whole family has ended.

use std::sync::mpsc;

use futures::FutureExt;
use tokio::sync::oneshot;
use twolane::{Handle, Priority};

use crate::admission::{is_full, limited, look};
use crate::support::{BOTH, lanes_with, time_limit};

fn countdown(n: u32) -> futures::future::BoxFuture<'static, u32> {
    async move {
        if n == 0 {
            return 0;
        }
        // Each form, on one lane of one thread, from inside.
        let cpu = Handle::current();
        let below = match n % 3 {
            0 => cpu.spawn(countdown(n - 1)).await,
            1 => cpu.try_spawn(countdown(n - 1)).unwrap().await,
            _ => cpu.admit().await.unwrap().spawn(countdown(n - 1)).await,
        };
        below.unwrap() + 1
    }
    .boxed()
}

#[test]
fn recursion_deeper_than_the_limit_ends() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = limited(backend, 1);
        assert_eq!(lanes.cpu.spawn(countdown(50)).wait().unwrap(), 50);
        assert!(!is_full(&lanes.cpu.handle()));
    }
}

/// By way of the other lane, and of another priority.
#[test]
fn what_a_job_submits_elsewhere_goes_in_by_its_place() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes_with(backend, 1, |builder| {
            let builder = builder.queue_limit(Priority::Normal, 1);
            builder.queue_limit(Priority::High, 1)
        });
        let cpu = lanes.cpu.handle();
        let high = cpu.with_priority(Priority::High);
        let _high_is_full = high.try_admit().unwrap();
        let outer = cpu.spawn(async move {
            let by_io = twolane::spawn_io(async {
                let inner = Handle::current().admit().await.unwrap().spawn_cpu(|| 1);
                inner.await.unwrap()
            });
            let by_high = high.spawn_cpu(|| 2);
            by_io.await.unwrap() + by_high.await.unwrap()
        });
        assert_eq!(outer.wait().unwrap(), 3);
        assert!(!is_full(&cpu));
    }
}

/// The chain goes by a priority that has no limit, and over the I/O lane.
#[test]
fn no_job_waits_for_a_place_of_its_own_family() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = limited(backend, 1);
        let cpu = lanes.cpu.handle();
        let (normal, high) = (cpu.clone(), cpu.with_priority(Priority::High));
        let outer = cpu.spawn(async move {
            let by_high = high.spawn(async move {
                let by_io = twolane::spawn_io(async move {
                    let permit = normal.admit().await.unwrap();
                    permit.spawn_cpu(|| 42).await.unwrap()
                });
                by_io.await.unwrap()
            });
            by_high.await.unwrap()
        });
        assert_eq!(outer.wait().unwrap(), 42);
        // From a job that came in by no place at all.
        let (normal, high) = (cpu.clone(), cpu.with_priority(Priority::High));
        let _place = cpu.try_admit().unwrap();
        let outer = high.spawn(async move {
            twolane::spawn_io(async move { normal.admit().await.is_ok() }).await
        });
        assert!(outer.wait().unwrap().unwrap());
    }
}

/// A job that has ended has left its place to what it had submitted.
#[test]
fn a_place_is_free_when_the_whole_family_has_ended() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = limited(backend, 1);
        let cpu = lanes.cpu.handle();
        let (let_go, wait) = oneshot::channel::<()>();
        let (ended, child_ended) = mpsc::channel();
        let parent = cpu.spawn_cpu(move || {
            let child = Handle::current().spawn(async move {
                wait.await.unwrap();
                let _ = ended.send(());
            });
            child.detach();
        });
        parent.wait().unwrap();
        assert!(is_full(&cpu));
        let mut next = cpu.admit();
        assert!(look(&mut next).is_pending());
        let_go.send(()).unwrap();
        child_ended.recv().unwrap();
        assert!(lanes.io.block_on(next).is_ok());
    }
}

/// It may go on for ever, and is no job of the lane.
#[test]
fn what_goes_on_in_the_io_lane_keeps_no_place() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = limited(backend, 1);
        let cpu = lanes.cpu.handle();
        let (polled, is_polled) = mpsc::channel();
        let background = async move {
            polled.send(()).unwrap();
            std::future::pending::<()>().await;
        };
        let parent = cpu.spawn_cpu(|| twolane::spawn_io(background).detach());
        parent.wait().unwrap();
        is_polled.recv().unwrap();
        assert!(!is_full(&cpu));
    }
}
