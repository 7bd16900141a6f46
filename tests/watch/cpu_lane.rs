//! On the CPU lane a closure may take as long as it likes. What else is told there?

use std::time::{Duration, Instant};

use crate::setting::{watched, watched_on};
use crate::support::wait::wait_until;
use twolane::watch::{Cause, watch};
use twolane::{Handle, JoinErrorKind, Priority};

#[test]
fn a_future_that_does_not_yield_is_told() {
    let watched = watched(2);
    let compute = watched.compute();
    let job = watched.cpu.handle().with_name("merge");
    job.spawn(async move { compute() }).wait().unwrap();
    let stall = watched.is_told("merge", "yield_if_due");
    assert_eq!(*stall.cause(), Cause::Computes);
    assert!(stall.is_of_pool());
    let handle = watched.cpu.handle().clone();
    let watcher = handle.watcher().unwrap();
    assert_eq!(watcher.pool_stalls(), 1);
    // It has kept no thread of the I/O lane.
    let of_io = watcher.stalls_by_culprit().into_iter();
    let mut of_io = of_io.filter_map(|(culprit, _)| culprit);
    assert!(of_io.all(|culprit| culprit.to_string() != "merge"));
}

#[test]
fn a_closure_past_its_deadline_is_told_and_no_other() {
    let watched = watched(2);
    let compute = watched.compute();
    let name = |name| watched.cpu.handle().with_name(name);
    // It computes on until the late one is told. There are two threads for that.
    let patient = name("patient").spawn_cpu(compute.clone());
    // On a busy machine it may come too late to start.
    let late = || {
        let permit = name("late").reserve().wait().unwrap();
        let late = permit.with_deadline(Instant::now() + Duration::from_millis(500));
        late.spawn_cpu(compute.clone()).wait()
    };
    wait_until(|| match late() {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.kind(), JoinErrorKind::Expired, "{error}");
            false
        }
    });
    patient.wait().unwrap();
    watched.is_told("late", "checkpoint");
    assert!(watched.stalls.try_recv().is_err());
}

/// Both threads wait for room in a channel, and a third job queues.
#[cfg(target_os = "linux")]
#[test]
fn closures_that_wait_while_others_queue_are_told() {
    let watched = watched(2);
    let cpu = watched.cpu.handle().with_name("sends");
    let (send, receive) = std::sync::mpsc::sync_channel(1);
    let jobs: Vec<_> = (0..3)
        .map(|_| {
            let send = send.clone();
            cpu.spawn_cpu(move || (0..2).try_for_each(|n| send.send(n)))
        })
        .collect();
    drop(send);
    let stall = watched.is_told("sends", "stream_from_cpu");
    assert_eq!(*stall.cause(), Cause::Blocks(Some("futex")));
    assert!(stall.is_of_pool());
    assert_eq!(receive.iter().count(), 6);
    for job in jobs {
        job.wait().unwrap().unwrap();
    }
}

#[test]
fn an_urgent_closure_that_takes_a_second_is_told() {
    let watched = watched(2);
    let compute = watched.compute();
    let high = watched.cpu.handle().with_priority(Priority::High);
    high.with_name("urgent").spawn_cpu(compute).wait().unwrap();
    let stall = watched.is_told("urgent", "Priority::Normal");
    assert!(stall.lasted() >= Duration::from_secs(1));
}

/// Two lanes have one I/O runtime.
#[test]
fn a_job_of_another_lane_is_not_told() {
    let theirs = watched(2);
    let own = watched_on(&theirs.io);
    let compute = theirs.compute();
    let job = theirs.cpu.spawn(async move { compute() });
    job.wait().unwrap();
    let pool_stalls = |cpu: &Handle| cpu.watcher().unwrap().pool_stalls();
    assert_eq!(pool_stalls(theirs.cpu.handle()), 1);
    // It sees what both share.
    let compute = own.compute();
    let shared = async move { compute() };
    let shared = own.io.spawn(watch(shared).named("shared"));
    own.io.block_on(shared).unwrap();
    let told = own.stalls.recv().unwrap();
    assert_eq!(told.culprit(), Some("shared"));
    assert_eq!(pool_stalls(own.cpu.handle()), 0);
}
