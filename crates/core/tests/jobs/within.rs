//! What becomes of a task with a time limit, and of its job.

use std::future::pending;
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use crate::support::wait::wait_until;
use crate::support::{Dropped, Stuck, cpu_lane, gives, lanes, nothing};
use futures::executor::block_on;
use twolane_core::JoinErrorKind;

const SOON: Duration = Duration::from_millis(1);
const NEVER: Duration = Duration::from_secs(3_600);

/// The awaiter is on no runtime.
#[test]
fn the_time_is_up() {
    let (cpu, lanes) = lanes(1).and_handle();
    let (tells, told) = mpsc::channel();
    let running = cpu.spawn_cpu_with(move |job| {
        tells.send("begun").unwrap();
        wait_until(|| job.checkpoint().is_err());
        tells.send("ended").unwrap();
        job.checkpoint()
    });
    // If it had not begun in time, it would never run.
    assert_eq!(told.recv().unwrap(), "begun");
    let late = block_on(running.within(SOON)).unwrap_err();
    assert!(late.kind() == JoinErrorKind::Expired && late.is_unavailable());
    assert_eq!(told.recv().unwrap(), "ended");

    let stuck = Stuck::start(&cpu);
    let (dropped, drops) = mpsc::channel();
    let captured = Dropped(dropped);
    let queued = cpu.spawn_cpu(move || drop(captured));
    let late = block_on(queued.within(SOON)).unwrap_err();
    assert_eq!(late.kind(), JoinErrorKind::Expired);
    assert!(drops.try_recv().is_err(), "its lane drops it");
    stuck.end();
    drops.recv().unwrap();

    let waits = lanes.io.block_on(async {
        let waits = cpu.spawn_io(pending::<()>());
        waits.within(SOON).await
    });
    assert_eq!(waits.unwrap_err().kind(), JoinErrorKind::Expired);
    assert_eq!(cpu.metrics().cancelled, 2);
}

#[test]
fn the_job_ends_in_time() {
    let (cpu, _lanes) = lanes(1).and_handle();
    let output = block_on(cpu.spawn_cpu(gives(42)).within(NEVER));
    assert_eq!(output.unwrap(), 42);
    let panics = cpu.spawn_cpu(|| panic!("in time"));
    assert!(block_on(panics.within(NEVER)).unwrap_err().is_panic());
    drop(cpu.spawn(pending::<()>()).within(NEVER));
    wait_until(|| cpu.metrics().cancelled == 1);
}

/// It needs no timer, and says what ended the lane.
#[test]
fn a_call_on_a_lane_that_is_closed_says_why() {
    for (is_shut_down, says) in [(false, "keep it in `main`"), (true, "was shut down")] {
        let (cpu, lanes) = lanes(1).and_handle();
        if is_shut_down {
            lanes.cpu.shutdown_background();
        }
        drop(lanes.cpu);
        let refused = block_on(cpu.spawn_cpu(nothing).within(NEVER)).unwrap_err();
        assert_eq!(refused.kind(), JoinErrorKind::Shutdown);
        assert!(refused.to_string().contains(says), "{refused}");
        let other = cpu.try_reserve().unwrap_err();
        assert_eq!(other.to_string(), refused.to_string());
    }
}

/// The timer was that of the I/O runtime: its end was a panic in each awaiter whose job ran on.
#[test]
fn the_time_is_up_whatever_becomes_of_the_io_runtime() {
    let (cpu, lanes) = lanes(2).and_handle();
    let [before, after] = [(); 2].map(|()| Stuck::<()>::start(&cpu).split());
    let mut limited = Box::pin(before.0.within(SOON.max(Duration::from_millis(20))));
    let mut cx = Context::from_waker(Waker::noop());
    let _ = limited.as_mut().poll(&mut cx);
    drop(lanes.io);
    for late in [block_on(limited), block_on(after.0.within(SOON))] {
        assert_eq!(late.unwrap_err().kind(), JoinErrorKind::Expired);
    }
}

/// It never was: no thread drove the timer.
#[test]
fn the_time_is_up_though_no_thread_drives_the_io_runtime() {
    let io = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let lane = cpu_lane(1, io.handle());
    let late = block_on(lane.spawn(pending::<()>()).within(SOON));
    assert_eq!(late.unwrap_err().kind(), JoinErrorKind::Expired);
    // On a thread of the lane as well.
    let cpu = lane.handle().clone();
    let waits = lane.spawn(async move { cpu.spawn(pending::<()>()).within(SOON).await });
    let late = waits.wait().unwrap();
    assert_eq!(late.unwrap_err().kind(), JoinErrorKind::Expired);
}

/// A waker of the user's that panics is logged, and the others are woken.
#[test]
fn a_waker_that_panics_ends_no_timer() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("the waker panics");
        }
    }
    let (cpu, _lanes) = lanes(1).and_handle();
    let panics = Waker::from(Arc::new(Panics));
    let mut first = Box::pin(cpu.spawn(pending::<()>()).within(SOON));
    let polled = first.as_mut().poll(&mut Context::from_waker(&panics));
    assert!(polled.is_pending());
    for _ in 0..2 {
        let late = block_on(cpu.spawn(pending::<()>()).within(SOON)).unwrap_err();
        assert_eq!(late.kind(), JoinErrorKind::Expired);
    }
    let late = block_on(first).unwrap_err();
    assert_eq!(late.kind(), JoinErrorKind::Expired);
}

/// A service awaits each of its jobs within a time that none of them takes: what an awaiter has left
/// with the timer goes with it, and not when the time comes.
#[test]
fn what_is_awaited_in_time_leaves_nothing() {
    struct Awaiter;
    impl Wake for Awaiter {
        fn wake(self: Arc<Self>) {}
    }
    let (cpu, _lanes) = lanes(1).and_handle();
    let awaiter = Arc::new(Awaiter);
    let waker = Waker::from(awaiter.clone());
    let limited = || {
        let mut limited = Box::pin(cpu.spawn(pending::<()>()).within(NEVER));
        let polled = limited.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        limited
    };
    let mut waiting: Vec<_> = (0..100).map(|_| limited()).collect();
    assert!(Arc::strong_count(&awaiter) > 100);
    waiting.clear();
    wait_until(|| Arc::strong_count(&awaiter) == 2);
}
