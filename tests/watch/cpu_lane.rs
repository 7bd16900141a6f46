//! On the CPU lane a closure may take as long as it likes. What else is told there?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::setting::{lane, watched};
use crate::support::time_limit;
use crate::support::wait::wait_until;
use twolane::watch::{Cause, Watch, watch};
use twolane::{Handle, JoinErrorKind, Priority};

#[test]
fn a_future_that_does_not_yield_is_told() {
    let _limit = time_limit();
    let watched = watched(2);
    let compute = watched.compute();
    let job = watched.cpu.handle().with_name("merge");
    job.spawn(async move { compute() }).wait().unwrap();
    let stall = watched.stalls.recv().unwrap();
    assert_eq!(stall.culprit(), Some("merge"));
    assert_eq!(*stall.cause(), Cause::Computes);
    assert!(stall.remedy().contains("yield_if_due"), "{stall}");
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
    let _limit = time_limit();
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
    let stall = watched.stalls.recv().unwrap();
    assert_eq!(stall.culprit(), Some("late"));
    assert!(stall.remedy().contains("checkpoint"), "{stall}");
    assert!(watched.stalls.try_recv().is_err());
}

/// Both threads wait for room in a channel, and a third job queues.
#[cfg(target_os = "linux")]
#[test]
fn closures_that_wait_while_others_queue_are_told() {
    let _limit = time_limit();
    let watched = watched(2);
    let cpu = watched.cpu.handle().with_name("sends");
    let (send, receive) = mpsc::sync_channel(1);
    let jobs: Vec<_> = (0..3)
        .map(|_| {
            let send = send.clone();
            cpu.spawn_cpu(move || (0..2).try_for_each(|n| send.send(n)))
        })
        .collect();
    drop(send);
    let stall = watched.stalls.recv().unwrap();
    assert_eq!(stall.culprit(), Some("sends"));
    assert_eq!(*stall.cause(), Cause::Blocks(Some("futex")));
    assert!(stall.remedy().contains("stream_from_cpu"), "{stall}");
    assert!(stall.is_of_pool());
    assert_eq!(receive.iter().count(), 6);
    for job in jobs {
        job.wait().unwrap().unwrap();
    }
}

#[test]
fn an_urgent_closure_that_takes_a_second_is_told() {
    let _limit = time_limit();
    let watched = watched(2);
    let compute = watched.compute();
    let high = watched.cpu.handle().with_priority(Priority::High);
    high.with_name("urgent").spawn_cpu(compute).wait().unwrap();
    let stall = watched.stalls.recv().unwrap();
    assert_eq!(stall.culprit(), Some("urgent"));
    assert!(stall.remedy().contains("Priority::Normal"), "{stall}");
    assert!(stall.lasted() >= Duration::from_secs(1));
    watched.told.store(false, SeqCst);
}

/// Two lanes have one I/O runtime.
#[test]
fn a_job_of_another_lane_is_not_told() {
    let _limit = time_limit();
    let theirs = watched(2);
    let (send, stalls) = mpsc::channel();
    let has_told = Arc::new(AtomicBool::new(false));
    let tells = has_told.clone();
    let watch_own = Watch::new().on_stall(move |stall| {
        tells.store(true, SeqCst);
        drop(send.send(stall.clone()));
    });
    let own = lane(&theirs.io, watch_own);
    let compute = theirs.compute();
    let job = theirs.cpu.spawn(async move { compute() });
    job.wait().unwrap();
    let pool_stalls = |cpu: &Handle| cpu.watcher().unwrap().pool_stalls();
    assert_eq!(pool_stalls(theirs.cpu.handle()), 1);
    // It sees what both share.
    let shared = async move { while !has_told.load(SeqCst) {} };
    let shared = theirs.io.spawn(watch(shared).named("shared"));
    theirs.io.block_on(shared).unwrap();
    let told = stalls.recv().unwrap();
    assert_eq!(told.culprit(), Some("shared"));
    assert_eq!(pool_stalls(own.handle()), 0);
}
