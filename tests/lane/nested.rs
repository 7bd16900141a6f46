//! What a job submits needs no permit, on whichever way it goes: so recursion never waits for
//! itself. The job's own permit is free when the job has ended.

use std::sync::mpsc;

use futures::FutureExt;
use tokio::sync::oneshot;
use twolane::{Handle, Priority};

use crate::admission::{is_full, limited};
use crate::support::{lanes_with, with_both};

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
            _ => cpu.reserve().await.unwrap().spawn(countdown(n - 1)).await,
        };
        below.unwrap() + 1
    }
    .boxed()
}

#[test]
fn recursion_deeper_than_the_limit_ends() {
    with_both(|backend| {
        let lanes = limited(backend, 1);
        assert_eq!(lanes.cpu.spawn(countdown(50)).wait().unwrap(), 50);
        assert!(!is_full(&lanes.cpu.handle()));
    });
}

/// By way of the other lane, and of another priority.
#[test]
fn what_a_job_submits_elsewhere_needs_no_permit() {
    with_both(|backend| {
        let lanes = lanes_with(backend, 1, |builder| {
            let builder = builder.queue_limit(Priority::Normal, 1);
            builder.queue_limit(Priority::High, 1)
        });
        let cpu = lanes.cpu.handle();
        let high = cpu.with_priority(Priority::High);
        let _high_is_full = high.try_reserve().unwrap();
        let outer = cpu.spawn(async move {
            let by_io = twolane::spawn_io(async {
                let inner = Handle::current().reserve().await.unwrap().spawn_cpu(|| 1);
                inner.await.unwrap()
            });
            let by_high = high.spawn_cpu(|| 2);
            by_io.await.unwrap() + by_high.await.unwrap()
        });
        assert_eq!(outer.wait().unwrap(), 3);
        assert!(!is_full(&cpu));
    });
}

/// The chain goes by a priority that has no limit, and over the I/O lane.
#[test]
fn a_chain_of_jobs_waits_for_no_permit() {
    with_both(|backend| {
        let lanes = limited(backend, 1);
        let cpu = lanes.cpu.handle();
        let (normal, high) = (cpu.clone(), cpu.with_priority(Priority::High));
        let outer = cpu.spawn(async move {
            let by_high = high.spawn(async move {
                let by_io = twolane::spawn_io(async move {
                    let permit = normal.reserve().await.unwrap();
                    permit.spawn_cpu(|| 42).await.unwrap()
                });
                by_io.await.unwrap()
            });
            by_high.await.unwrap()
        });
        assert_eq!(outer.wait().unwrap(), 42);
        // From a job that has no permit.
        let (normal, high) = (cpu.clone(), cpu.with_priority(Priority::High));
        let _permit = cpu.try_reserve().unwrap();
        let outer = high.spawn(async move {
            twolane::spawn_io(async move { normal.reserve().await.is_ok() }).await
        });
        assert!(outer.wait().unwrap().unwrap());
    });
}

/// The limit counts the jobs that come from outside.
#[test]
fn a_permit_is_free_when_its_job_has_ended() {
    with_both(|backend| {
        let lanes = limited(backend, 1);
        let cpu = lanes.cpu.handle();
        let (let_go, wait) = oneshot::channel::<()>();
        let (started, child_started) = mpsc::channel();
        let parent = cpu.spawn_cpu(move || {
            Handle::current().spawn(async move {
                started.send(()).unwrap();
                wait.await
            })
        });
        let child = parent.wait().unwrap();
        child_started.recv().unwrap();
        let permit = cpu.try_reserve().unwrap();
        assert!(is_full(&cpu));
        let_go.send(()).unwrap();
        child.wait().unwrap().unwrap();
        drop(permit);
        assert!(!is_full(&cpu));
    });
}

/// It may go on for ever, and is no job of the lane.
#[test]
fn what_goes_on_in_the_io_lane_keeps_no_permit() {
    with_both(|backend| {
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
    });
}
