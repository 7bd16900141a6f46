//! On the CPU lane a closure may take as long as it likes. What else is told there?

use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use crate::setting::watched;
use crate::support::{BOTH, time_limit};
use twolane::{Cause, Priority};

#[test]
fn a_future_that_does_not_yield_is_told() {
    let _limit = time_limit();
    for backend in BOTH {
        let watched = watched(backend, Some(2));
        let compute = watched.compute();
        let job = watched.cpu.handle().with_name("merge");
        job.spawn(async move { compute() }).wait().unwrap();
        let stall = watched.stalls.recv().unwrap();
        assert_eq!(stall.culprit(), Some("merge"));
        assert_eq!(*stall.cause(), Cause::Computes);
        assert!(stall.remedy().contains("yield_if_due"), "{stall}");
        assert!(stall.is_of_cpu_lane());
        assert_eq!(watched.cpu.metrics().cpu_stalls, 1);
        // It has kept no thread of the I/O lane.
        let of_io = watched.cpu.handle().io_stalls();
        assert!(!of_io.iter().any(|(culprit, _)| culprit == "merge"));
    }
}

#[test]
fn a_closure_past_its_deadline_is_told_and_no_other() {
    let _limit = time_limit();
    for backend in BOTH {
        let watched = watched(backend, Some(2));
        let compute = watched.compute();
        let name = |name| watched.cpu.handle().with_name(name);
        // It computes on until the late one is told. There are two threads for that.
        let patient = name("patient").spawn_cpu(compute.clone());
        let soon = Instant::now() + Duration::from_secs(2);
        let late = name("late").admit().wait().unwrap().with_deadline(soon);
        late.spawn_cpu(compute).wait().unwrap();
        patient.wait().unwrap();
        let stall = watched.stalls.recv().unwrap();
        assert_eq!(stall.culprit(), Some("late"));
        assert!(stall.remedy().contains("checkpoint"), "{stall}");
        assert!(watched.stalls.try_recv().is_err());
    }
}

#[test]
fn an_urgent_closure_that_takes_a_second_is_told() {
    let _limit = time_limit();
    for backend in BOTH {
        let watched = watched(backend, Some(2));
        let compute = watched.compute();
        let high = watched.cpu.handle().with_priority(Priority::High);
        high.with_name("urgent").spawn_cpu(compute).wait().unwrap();
        let stall = watched.stalls.recv().unwrap();
        assert_eq!(stall.culprit(), Some("urgent"));
        assert!(stall.remedy().contains("Priority::Normal"), "{stall}");
        assert!(stall.lasted() >= Duration::from_secs(1));
        watched.told.store(false, SeqCst);
    }
}
