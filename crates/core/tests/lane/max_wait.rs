//! What comes into a queue with a limit in time? (How long jobs are taken to be, and the arithmetic:
//! `tests/models/shuttle/of_limits.rs`. That accepted jobs wait for no longer: the bench `max_wait`.)
//!
//! The lanes here have run nothing yet, so each thread takes on eight jobs, by their number and not
//! by any time that was measured.

use std::time::{Duration, Instant};

use crate::admission::{is_full, look};
use crate::support::wait::wait_until;
use crate::support::{self, Stuck, gives, lanes_with, nothing, suspended};
use futures::StreamExt;
use twolane_core::{Handle, JoinErrorKind, Priority, Task};

const LONG: Duration = Duration::from_secs(600);
const AT_FIRST: usize = 8;

/// One thread.
fn limited() -> support::Lanes {
    lanes_with(1, |builder| builder.max_wait(Priority::Normal, LONG))
}

/// Submits until one is refused.
fn fill(cpu: &Handle) -> Vec<Task<usize>> {
    let submit = |n| cpu.spawn_cpu(gives(n));
    let all = (0..100).map(submit);
    all.take_while(|task| !task.is_finished()).collect()
}

#[test]
fn a_full_lane_refuses_and_says_when_to_come_back() {
    let (cpu, _lanes) = limited().and_handle();
    let running = Stuck::start(&cpu);
    let queued = fill(&cpu);
    assert_eq!(queued.len(), AT_FIRST - 1);
    let full = cpu.try_reserve().unwrap_err();
    assert_eq!(full.kind(), JoinErrorKind::QueueFull);
    assert_eq!(full.retry_after(), Some(LONG));
    assert!(full.to_string().contains("Builder::max_wait"), "{full}");
    let full = cpu.spawn(async { 4 }).wait().unwrap_err();
    assert_eq!(full.retry_after(), Some(LONG));
    assert_eq!(cpu.metrics().rejected, 3);
    // Each priority has a limit of its own, or none, and who needs none has none.
    let high = cpu.with_priority(Priority::High);
    assert_eq!(high.spawn_cpu(gives(5)).wait().unwrap(), 5);
    let own = cpu.without_limit().spawn_cpu(gives(6));
    running.end();
    for (n, task) in queued.into_iter().enumerate() {
        assert_eq!(task.wait().unwrap(), n);
    }
    assert_eq!(own.wait().unwrap(), 6);
    assert_eq!(cpu.spawn_cpu(gives(7)).wait().unwrap(), 7);
}

/// 180 clients that uploaded slowly filled an idle lane, and where the other jobs were tiny, those of
/// the permits waited six times as long as they might. A permit counts in time once its job comes.
#[test]
fn a_permit_that_was_tried_refuses_no_job_and_may_be_refused_itself() {
    let (cpu, _lanes) = limited().and_handle();
    let mut uploads: Vec<_> = (0..180).map(|_| cpu.try_reserve().unwrap()).collect();
    let running = Stuck::start(&cpu);
    let queued = fill(&cpu);
    assert_eq!(queued.len(), AT_FIRST - 1);
    let upload = uploads.pop().unwrap().spawn_cpu(gives(2));
    let full = upload.wait().unwrap_err();
    assert_eq!(full.kind(), JoinErrorKind::QueueFull);
    assert_eq!(full.retry_after(), Some(LONG));
    // One that `fill` was refused, and this one.
    assert_eq!(cpu.metrics().rejected, 2);
    running.end();
    queued.into_iter().for_each(|task| drop(task.wait()));
    let upload = uploads.pop().unwrap().spawn_cpu(gives(3));
    assert_eq!(upload.wait().unwrap(), 3);
}

/// The next one waits until its job is queued, and then for room.
#[test]
fn a_permit_that_was_waited_for_is_not_refused() {
    let (cpu, _lanes) = limited().and_handle();
    let permit = cpu.reserve().wait().unwrap();
    let mut next = cpu.reserve();
    assert!(look(&mut next).is_pending());
    let running = Stuck::start(&cpu);
    let queued = fill(&cpu);
    assert!(is_full(&cpu));
    let own = permit.spawn_cpu(gives(1));
    assert!(look(&mut next).is_pending());
    running.end();
    queued.into_iter().for_each(|task| drop(task.wait()));
    assert_eq!(own.wait().unwrap(), 1);
    assert_eq!(next.wait().unwrap().spawn_cpu(gives(2)).wait().unwrap(), 2);
}

/// A client that uploads slowly with its permit does not keep the others from theirs, on a lane on
/// which no job ends that would tell them.
#[test]
fn a_permit_that_is_kept_is_forgotten_after_a_while() {
    let (cpu, _lanes) = lanes_with(1, |builder| {
        builder.max_wait(Priority::Normal, Duration::from_millis(20))
    })
    .and_handle();
    let kept: Vec<_> = (0..10).map(|_| cpu.reserve().wait().unwrap()).collect();
    drop(kept);
}

#[test]
fn a_shutdown_ends_the_wait_for_room() {
    let (cpu, lanes) = limited().and_handle();
    let permit = cpu.reserve().wait();
    let mut reserve = cpu.reserve();
    assert!(look(&mut reserve).is_pending());
    lanes.cpu.shutdown().wait();
    let closed = reserve.wait().unwrap_err();
    assert_eq!(closed.kind(), JoinErrorKind::Shutdown);
    let closed = cpu.spawn_cpu(nothing).wait().unwrap_err();
    assert_eq!(closed.kind(), JoinErrorKind::Shutdown);
    drop(permit);
}

/// They are part of a job that was admitted, and later ones wait behind them.
#[test]
fn jobs_of_jobs_are_not_refused_and_count() {
    let (cpu, _lanes) = limited().and_handle();
    let own = cpu.clone();
    let parts = cpu.spawn_cpu(move || {
        let parts: Vec<_> = (0..100).map(|n| own.spawn_cpu(gives(n))).collect();
        let (tell, told) = std::sync::mpsc::channel();
        let outside = own.clone();
        std::thread::spawn(move || tell.send(is_full(&outside)).unwrap());
        (parts, told.recv().unwrap())
    });
    let (parts, was_full) = parts.wait().unwrap();
    assert!(was_full);
    for (n, part) in parts.into_iter().enumerate() {
        assert_eq!(part.wait().unwrap(), n);
    }
}

/// Clients that gave up counted until their turn came, though their jobs take no time then.
#[test]
fn a_job_that_was_cancelled_before_it_began_counts_no_time() {
    let (cpu, _lanes) = limited().and_handle();
    let running = Stuck::start(&cpu);
    let queued = fill(&cpu);
    assert!(is_full(&cpu));
    drop(queued);
    assert!(!is_full(&cpu));
    running.end();
}

/// Two exports refused jobs that would have waited for one step of theirs.
#[test]
fn a_stream_counts_what_a_job_waits_for_and_not_all_that_it_has_left() {
    const ROWS: u64 = 50;
    let row = |n: u64| {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(2) {
            std::hint::spin_loop();
        }
        n
    };
    let export = |cpu: &Handle| {
        let rows = futures::stream::iter(0..ROWS).map(row);
        cpu.with_name("export").stream_from_cpu(rows, 1, |_| 1)
    };
    // All of it, by a reader that lets the lane end a step for each row.
    let read = |cpu: &Handle| {
        let mut stream = export(cpu);
        for _ in 0..ROWS {
            while cpu.metrics().suspended == 0 && cpu.metrics().completed == 0 {
                std::thread::yield_now();
            }
            futures::executor::block_on(stream.next()).unwrap().unwrap();
        }
        let sites = cpu.call_sites();
        let site = sites.into_iter().find(|it| it.site == "export");
        site.unwrap().total_run
    };
    let took = read(support::lanes(1).cpu.handle());
    let lanes = lanes_with(1, |builder| {
        // Two times all that a stream has is more than that; some steps are far less.
        builder.max_wait(Priority::Normal, took * 3 / 2)
    });
    let cpu = lanes.cpu.handle().clone();
    read(&cpu);
    let held = Stuck::start(&cpu.without_limit());
    let running = [(), ()].map(|()| export(&cpu.without_limit()));
    let task = cpu.with_name("job").spawn_cpu(gives(1));
    held.end();
    assert_eq!(task.wait().unwrap(), 1);
    drop(running);
}

/// Thousands of futures may wait for a slow server.
#[test]
fn futures_that_wait_keep_nobody_away() {
    let (cpu, _lanes) = limited().and_handle();
    let waiting: Vec<_> = (0..10 * AT_FIRST).map(|n| suspended(&cpu, n)).collect();
    assert!(!is_full(&cpu));
    assert_eq!(cpu.spawn_cpu(gives(1)).wait().unwrap(), 1);
    drop(waiting);
}

/// A client that reads slowly. Its stream has the permit of a limit in jobs until it ends.
#[test]
fn a_stream_that_waits_for_its_reader_keeps_nobody_away_in_time() {
    let lanes = lanes_with(1, |builder| {
        let builder = builder.max_wait(Priority::Normal, LONG);
        builder.queue_limit(Priority::Normal, 2 * AT_FIRST)
    });
    let cpu = lanes.cpu.handle().clone();
    let numbers = || futures::stream::iter(0..3_u64);
    let streams: Vec<_> = (0..2 * AT_FIRST)
        .map(|n| {
            let permit = cpu.try_reserve().unwrap();
            let stream = permit.stream_from_cpu(numbers(), 1, |_| 1);
            wait_until(|| cpu.metrics().suspended == n as u64 + 1);
            stream
        })
        .collect();
    // The limit in jobs: there is no time to come back after.
    assert_eq!(cpu.try_reserve().unwrap_err().retry_after(), None);
    for stream in streams {
        let read: Vec<_> = futures::executor::block_on(stream.map(Result::unwrap).collect());
        assert_eq!(read, [0, 1, 2]);
    }
    wait_until(|| !is_full(&cpu));
}
