//! Panics, and detached jobs.

use std::sync::mpsc;

use crate::support::wait::wait_until;
use crate::support::{Lanes, PanicsOnDrop, Stuck, gives, nothing, suspended};
use crate::tap::{PANICS_WHEN_CLOSED, listen};
use twolane_core::{Handle, JoinErrorKind, Priority, Task};

/// The panic hook prints it to stderr; a service reads its log.
#[test]
fn a_panic_that_no_task_will_carry() {
    listen(|log, Lanes { cpu, io: _io }| {
        let says = |text| log.says(&["ERROR request: a job without an awaiter panicked", text]);
        let span = tracing::info_span!("request");
        let _request = span.enter();
        cpu.spawn_cpu(|| panic!("detached")).detach();
        says("detached");
        cpu.spawn(async { panic!("a future") }).detach();
        says("a future");

        // Its task is dropped while it runs.
        let Stuck { task, .. } = Stuck::<()>::start(cpu.handle());
        drop(task);
        says("RecvError");

        // Unread, but there: then it is told where the task is dropped.
        let task = cpu.spawn_cpu(|| panic!("unread"));
        wait_until(|| task.is_finished());
        drop(task);
        says("unread");

        // What a `spawn_io` has made, and its task is dropped.
        let task = cpu.handle().spawn_io(async { PanicsOnDrop });
        wait_until(|| task.is_finished());
        drop(task);
        let what = "the destructor of an unread output panicked";
        log.says(&["", what, "the destructor panics"]);

        // One that is read is the reader's business.
        let read = cpu.spawn_cpu(|| panic!("read")).wait();
        assert!(read.unwrap_err().is_panic());
        log.is_silent();
        assert!(cpu.shutdown().wait().is_empty());
    });
}

/// A job's span ends with the job's last reference, which is here the lane's. What
/// the subscriber panics with there is the log's, and the lane goes on.
#[test]
fn a_subscriber_that_panics_when_a_jobs_span_closes() {
    listen(|log, Lanes { cpu, io: _io }| {
        let stuck = Stuck::start(cpu.handle());
        let jobs: [fn(&Handle) -> Task<()>; 2] =
            [|cpu| cpu.spawn_cpu(nothing), |cpu| cpu.spawn(async {})];
        for job in jobs {
            let span = tracing::info_span!(PANICS_WHEN_CLOSED);
            span.in_scope(|| job(cpu.handle()).detach());
        }
        stuck.end();
        for _ in 0..2 {
            log.says(&["ERROR twolane: what a job left behind panicked"]);
        }
        assert_eq!(cpu.spawn_cpu(gives(1)).wait().unwrap(), 1);
    });
}

const DROPPED: &str = "WARN twolane: detached jobs were dropped";

/// With their number, in one line, while every thread is stuck.
#[test]
fn detached_jobs_that_a_shutdown_drops() {
    listen(|log, Lanes { cpu, io: _io }| {
        let low = cpu.handle().with_priority(Priority::Low);
        suspended(cpu.handle(), ()).detach();
        let (stuck, let_go) = Stuck::start(cpu.handle()).split();
        let low_stuck = Stuck::start(&low);
        for _ in 0..10 {
            cpu.spawn_cpu(nothing).detach();
            low.spawn_cpu(nothing).detach();
        }
        // These are told, or want to hear nothing.
        let awaited: Vec<_> = (0..5).map(|_| cpu.spawn_cpu(nothing)).collect();
        let aborted = cpu.spawn_cpu(nothing);
        aborted.abort();
        drop(aborted);
        let cancelled = cpu.spawn_cpu(nothing);
        let abort = cancelled.abort_handle();
        cancelled.detach();
        abort.abort();
        // This one runs to its end.
        stuck.detach();

        let over = cpu.shutdown();
        log.says(&[DROPPED, "jobs=21 "]);
        for task in awaited {
            assert_eq!(task.wait().unwrap_err().kind(), JoinErrorKind::Shutdown);
        }
        let_go.send(()).unwrap();
        low_stuck.end();
        assert!(over.wait().is_empty());
    });
}

/// The shutdown waits for it.
#[test]
fn a_rayon_pool_that_is_kept() {
    listen(|log, Lanes { cpu, io: _io }| {
        let pool = cpu.rayon_pool(Priority::Normal).unwrap();
        cpu.shutdown_background();
        log.says(&["WARN ", "`CpuRuntime::rayon_pool` is kept elsewhere"]);
        drop(pool);
        assert!(cpu.shutdown().wait().is_empty());
    });
}

/// `spawn_blocking` would have run it.
#[test]
fn a_task_that_is_dropped_before_its_closure_began() {
    listen(|log, Lanes { cpu, io: _io }| {
        let cpu = cpu.handle().with_name("audit");
        let stuck = Stuck::start(&cpu);
        for _ in 0..2 {
            drop(cpu.spawn_cpu(nothing));
        }
        log.says(&["INFO ", "before its closure began", "site=audit"]);
        // These have begun, or are told by a call.
        drop(cpu.spawn(std::future::pending::<()>()));
        let other = cpu.with_name("another audit");
        let aborted = other.spawn_cpu(nothing);
        aborted.abort();
        drop(aborted);
        stuck.end();
        drop(other.spawn_cpu(nothing).wait());
    });
}

/// As lost as one that never ran: its checkpoint has ended it before it had its result.
#[test]
fn a_detached_closure_that_a_shutdown_cuts_short() {
    for detached_at_once in [true, false] {
        listen(|log, Lanes { cpu, io: _io }| {
            let (started, running) = mpsc::channel();
            let task: Task<()> = cpu.spawn_cpu_with(move |job| {
                started.send(()).unwrap();
                loop {
                    job.checkpoint()?;
                    std::thread::yield_now();
                }
            });
            running.recv().unwrap();
            if detached_at_once {
                task.detach();
                assert!(cpu.shutdown().wait().is_empty());
            } else {
                assert!(cpu.shutdown().wait().is_empty());
                log.is_silent();
                task.detach();
            }
            log.says(&[DROPPED]);
        });
    }
}

/// A task that is detached afterwards can't have seen it either.
#[test]
fn jobs_that_are_detached_when_it_is_too_late() {
    listen(|log, Lanes { cpu, io: _io }| {
        let stuck = Stuck::start(cpu.handle());
        let [queued, cancelled]: [Task<()>; 2] = [(); 2].map(|()| cpu.spawn_cpu(nothing));
        cancelled.abort();
        let over = cpu.shutdown();
        stuck.end();
        assert!(over.wait().is_empty());
        log.is_silent();
        queued.detach();
        log.says(&[DROPPED, "jobs=1 "]);
        cpu.spawn_cpu(nothing).detach();
        log.says(&[DROPPED, "jobs=1 "]);
        cancelled.detach();
        drop(cpu.spawn_cpu(nothing));
    });
}
