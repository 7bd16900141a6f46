//! How does a closure end that its checkpoint has told to end?

use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::support::{BOTH, Lanes, lanes, lanes_with, time_limit};
use twolane::{Cancelled, Handle, JobContext, JoinErrorKind, Priority, Task};

/// Runs until its checkpoint fails, and returns that error. It has begun when this returns.
fn spin(cpu: &Handle) -> Task<()> {
    let (started, running) = mpsc::channel();
    let task = cpu.spawn_cpu_with(move |job| {
        started.send(()).unwrap();
        loop {
            job.checkpoint()?;
            std::thread::yield_now();
        }
    });
    running.recv().unwrap();
    task
}

#[test]
fn an_aborted_closure_ends_as_cancelled() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let task = spin(&lanes.cpu.handle());
        task.abort();
        assert_eq!(task.wait().unwrap_err().kind(), JoinErrorKind::Cancelled);
        let metrics = lanes.cpu.handle().metrics();
        assert_eq!(
            (metrics.cancelled, metrics.completed),
            (1, 0),
            "{backend:?}"
        );
        // And the gauges are back.
        assert_eq!(
            (metrics.queued, metrics.running, metrics.suspended),
            (0, 0, 0)
        );
    }
}

#[test]
fn a_late_closure_ends_as_expired() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let cpu = lanes.cpu.handle();
        let begins_in = |time| {
            let soon = cpu.with_deadline(Instant::now() + time);
            let (started, running) = mpsc::channel();
            let task = soon.spawn_cpu_with(move |job| -> Result<(), Cancelled> {
                started.send(()).unwrap();
                loop {
                    job.checkpoint()?;
                    std::thread::yield_now();
                }
            });
            let has_begun = running.recv().is_ok();
            assert_eq!(task.wait().unwrap_err().kind(), JoinErrorKind::Expired);
            has_begun
        };
        // On a busy machine it may come too late to begin: then once more, with more time.
        let times = [100, 1_000, 10_000].map(Duration::from_millis);
        let tries = 1 + times
            .into_iter()
            .take_while(|time| !begins_in(*time))
            .count() as u64;
        let metrics = cpu.metrics();
        assert_eq!(metrics.completed, 0, "{backend:?}");
        assert!(tries <= 3, "it never began");
        assert_eq!(metrics.expired + metrics.rejected, tries);
    }
}

#[test]
fn a_closure_that_a_shutdown_ends_is_unavailable() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let task = spin(&lanes.cpu.handle());
        assert!(lanes.cpu.shutdown().wait().is_empty());
        let error = task.wait().unwrap_err();
        assert_eq!(error.kind(), JoinErrorKind::Shutdown, "{backend:?}");
        assert!(error.is_unavailable());
        assert_eq!(lanes.cpu.handle().metrics().dropped, 1);
    }
}

/// Its permit is free when the awaiter learns of its end, as with any job.
#[test]
fn its_permit_comes_back() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes_with(backend, 1, |lane| lane.queue_limit(Priority::Normal, 1));
        let cpu = lanes.cpu.handle();
        let task = spin(&cpu);
        assert!(cpu.try_reserve().unwrap_err().is_queue_full());
        task.abort();
        task.wait().unwrap_err();
        assert!(cpu.try_reserve().is_ok(), "{backend:?}");
    }
}

/// An output that comes in spite of the request is an output, and an error of the closure's own
/// is one too.
#[test]
fn a_closure_may_end_as_it_likes() {
    let _limit = time_limit();
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let (started, running) = mpsc::channel();
        let task = cpu.spawn_cpu_with(move |job| {
            started.send(()).unwrap();
            while !job.is_cancelled() {
                std::thread::yield_now();
            }
            Ok("what there is")
        });
        running.recv().unwrap();
        task.abort();
        assert_eq!(task.wait().unwrap(), "what there is");
        let own = cpu.spawn_cpu_with(|_| Ok("x".parse::<u8>()));
        assert!(own.wait().unwrap().is_err());
        assert_eq!(cpu.handle().metrics().completed, 2, "{backend:?}");
    }
}

/// The reason is that of the checkpoint which failed, also in a function that other errors of
/// jobs come out of.
#[test]
fn the_error_says_why() {
    fn parse(job: &JobContext) -> Result<u8, twolane::JoinError> {
        job.checkpoint()?;
        Ok(7)
    }
    let _limit = time_limit();
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let (told, tells) = mpsc::channel::<(Cancelled, String)>();
        let (started, running) = mpsc::channel();
        let task = cpu.spawn_cpu_with(move |job| {
            assert_eq!(parse(job).unwrap(), 7);
            started.send(()).unwrap();
            while job.checkpoint().is_ok() {
                std::thread::yield_now();
            }
            let error = parse(job).unwrap_err().to_string();
            told.send((job.checkpoint().unwrap_err(), error)).unwrap();
            Ok(())
        });
        running.recv().unwrap();
        let shutdown = cpu.shutdown();
        let (cancelled, error) = tells.recv().unwrap();
        assert_eq!(
            cancelled.to_string(),
            "the job is to end: its lane shuts down"
        );
        assert!(error.contains("shut down"), "{error}");
        task.wait().unwrap();
        shutdown.wait();
    }
}
