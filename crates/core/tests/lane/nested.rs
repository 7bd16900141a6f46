//! What a job submits needs no permit, on whichever way it goes: so recursion never waits for
//! itself. The job's own permit is free when the job has ended.

use std::sync::mpsc;

use futures::FutureExt;
use twolane_core::{Handle, JoinErrorKind, Priority};

use crate::admission::{is_full, limited};
use crate::support::{gives, lanes_with, nothing};

fn countdown(n: u32) -> futures::future::BoxFuture<'static, u32> {
    async move {
        if n == 0 {
            return 0;
        }
        // Each form, on one lane of one thread, from inside.
        let cpu = Handle::current();
        let below = match n % 3 {
            0 => cpu.spawn(countdown(n - 1)).await,
            1 => cpu.try_reserve().unwrap().spawn(countdown(n - 1)).await,
            _ => cpu.reserve().await.unwrap().spawn(countdown(n - 1)).await,
        };
        below.unwrap() + 1
    }
    .boxed()
}

#[test]
fn recursion_deeper_than_the_limit_ends() {
    let lanes = limited(1);
    assert_eq!(lanes.cpu.spawn(countdown(50)).wait().unwrap(), 50);
    assert!(!is_full(lanes.cpu.handle()));
}

/// The chain goes by a priority that is full, or has no limit, and over the I/O lane.
#[test]
fn a_chain_of_jobs_waits_for_no_permit() {
    for is_full in [true, false] {
        let lanes = lanes_with(1, |builder| {
            let builder = builder.queue_limit(Priority::Normal, 1);
            match is_full {
                true => builder.queue_limit(Priority::High, 1),
                false => builder,
            }
        });
        let cpu = lanes.cpu.handle().clone();
        let (normal, high) = (cpu.clone(), cpu.with_priority(Priority::High));
        let _high_is_full = high.try_reserve().unwrap();
        let outer = cpu.spawn(async move {
            let by_high = high.spawn(async move {
                let by_io = twolane_core::spawn_io(async move {
                    let permit = normal.reserve().await.unwrap();
                    permit.spawn_cpu(gives(42)).await.unwrap()
                });
                by_io.await.unwrap()
            });
            by_high.await.unwrap()
        });
        assert_eq!(outer.wait().unwrap(), 42);
    }
    // From a job that has no permit.
    let (cpu, _lanes) = limited(1).and_handle();
    let (normal, high) = (cpu.clone(), cpu.with_priority(Priority::High));
    let _permit = cpu.try_reserve().unwrap();
    let outer = high.spawn(async move {
        twolane_core::spawn_io(async move { normal.reserve().await.is_ok() }).await
    });
    assert!(outer.wait().unwrap().unwrap());
}

/// It may go on for ever, and is no job of the lane.
#[test]
fn what_goes_on_in_the_io_lane_keeps_no_permit() {
    let (cpu, _lanes) = limited(1).and_handle();
    let (polled, is_polled) = mpsc::channel();
    let background = async move {
        polled.send(()).unwrap();
        std::future::pending::<()>().await;
    };
    let parent = cpu.spawn_cpu(|| twolane_core::spawn_io(background).detach());
    parent.wait().unwrap();
    is_polled.recv().unwrap();
    assert!(!is_full(&cpu));
}

/// A server that a job had started on the I/O lane submitted without permits for its whole life:
/// 997 jobs were queued at a limit of 1.
#[test]
fn what_a_job_leaves_on_the_io_lane_needs_permits() {
    let (cpu, _lanes) = limited(1).and_handle();
    // The job detaches its task, or what the job hands the task to does.
    for in_job in [true, false] {
        let (go, begin) = tokio::sync::oneshot::channel::<()>();
        let (tell, told) = mpsc::channel();
        let server = async move {
            begin.await.unwrap();
            tell.send(twolane_core::spawn_cpu(nothing).await).unwrap();
        };
        let left = cpu.spawn_cpu(move || {
            let server = twolane_core::spawn_io(server);
            if in_job {
                server.detach();
                return None;
            }
            Some(server)
        });
        if let Some(server) = left.wait().unwrap() {
            server.detach();
        }
        let _last = cpu.try_reserve().unwrap();
        go.send(()).unwrap();
        let error = told.recv().unwrap().unwrap_err();
        assert_eq!(error.kind(), JoinErrorKind::QueueFull, "{error}");
    }
}
