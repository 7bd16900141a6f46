//! What comes into a queue with a limit? (In which order, and when is a place free again: `model`. That the limit holds with many submitters, and that a shutdown ends each wait:
//! `storm`.)
//!
//! Once, a job that was cancelled in the queue gave its place back at once, while its entry, and
//! all that it had captured, stayed there until a thread came. Clients that gave up and came again
//! filled the memory at any limit. So a place is free when the captures are gone: `model` knows it
//! to the call.

use std::sync::mpsc;
use std::task::{Context, Poll};
use std::time::Instant;

use crate::support::{self, Stuck, gives, lanes_with, nothing};
use futures::FutureExt;
use futures::task::noop_waker;
use twolane_core::future::Reserve;
use twolane_core::{Handle, JoinErrorKind, Permit, Priority};

/// One thread, and room for so many jobs at Normal.
pub(crate) fn limited(limit: usize) -> support::Lanes {
    lanes_with(1, |builder| builder.queue_limit(Priority::Normal, limit))
}

/// Whether it has its place; if not, it waits from now on.
pub(crate) fn look(reserve: &mut Reserve) -> Poll<Result<Permit, twolane_core::JoinError>> {
    reserve.poll_unpin(&mut Context::from_waker(&noop_waker()))
}

pub(crate) fn is_full(cpu: &Handle) -> bool {
    cpu.try_reserve()
        .is_err_and(|error| error.kind() == JoinErrorKind::QueueFull)
}

#[test]
fn a_full_queue_refuses() {
    let (cpu, _lanes) = limited(2).and_handle();
    let running = Stuck::start(&cpu);
    let queued = cpu.spawn_cpu(gives(1));
    let full = cpu.try_reserve().unwrap_err();
    assert_eq!(full.kind(), JoinErrorKind::QueueFull);
    assert!(full.is_unavailable());
    assert!(full.to_string().contains("Builder::queue_limit"), "{full}");
    // The plain forms tell the task.
    assert!(cpu.spawn_cpu(gives(3)).wait().unwrap_err().kind() == JoinErrorKind::QueueFull);
    assert!(cpu.spawn(async { 4 }).wait().unwrap_err().kind() == JoinErrorKind::QueueFull);
    // Each priority has a limit of its own, or none.
    let high = cpu.with_priority(Priority::High);
    assert_eq!(high.spawn_cpu(gives(5)).wait().unwrap(), 5);
    running.end();
    assert_eq!(queued.wait().unwrap(), 1);
    let permit = cpu.try_reserve().unwrap();
    assert_eq!(permit.spawn_cpu(gives(6)).wait().unwrap(), 6);
    assert_eq!(cpu.metrics().rejected, 3);
}

/// Tells at its drop whether the queue is full.
struct Asks(Handle, mpsc::Sender<bool>);

impl Drop for Asks {
    fn drop(&mut self) {
        self.1.send(is_full(&self.0)).unwrap();
    }
}

/// By a permit, since its deadline has passed.
#[test]
fn a_refused_job_has_its_place_until_its_captures_are_gone() {
    let (cpu, _lanes) = limited(1).and_handle();
    let permit = cpu.try_reserve().unwrap();
    let (send, seen) = mpsc::channel();
    let asks = Asks(cpu, send);
    let late = permit.with_deadline(Instant::now());
    let refused = late.spawn_cpu(move || drop(asks)).wait().unwrap_err();
    assert_eq!(refused.kind(), JoinErrorKind::Expired);
    assert!(seen.recv().unwrap());
}

/// It took a second place, of which nothing told.
#[test]
#[should_panic(expected = "a `Reserve` was polled after it was ready")]
fn a_reserve_is_not_to_be_polled_again() {
    let lanes = limited(2);
    let mut reserve = lanes.cpu.handle().reserve();
    let Poll::Ready(Ok(_permit)) = look(&mut reserve) else {
        panic!("there is a permit");
    };
    drop(look(&mut reserve));
}

#[test]
fn what_needs_no_permit_passes_that_on_to_no_other_handle() {
    let (cpu, _lanes) =
        lanes_with(1, |builder| builder.queue_limit(Priority::Normal, 1)).and_handle();
    let job = cpu.spawn(async {
        let in_io = twolane_core::spawn_io(async {
            // The job that waits for this one holds the only permit.
            let current = Handle::current();
            let permit = current.try_reserve().unwrap();
            permit.spawn_cpu(nothing).await.unwrap();
            current
        });
        in_io.await.unwrap()
    });
    let from_job = job.wait().unwrap();
    let _held = cpu.try_reserve().unwrap();
    assert!(from_job.try_reserve().is_err(), "its job has ended");
    let without_limit = cpu.without_limit();
    let _entered = without_limit.enter();
    assert!(without_limit.try_reserve().is_ok());
    assert!(cpu.try_reserve().is_err());
}
