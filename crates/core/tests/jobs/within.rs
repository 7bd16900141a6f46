//! What becomes of a task with a time limit, and of its job.

use std::future::pending;
use std::sync::mpsc;
use std::time::Duration;

use crate::support::wait::wait_until;
use crate::support::{Dropped, Stuck, on_both};
use futures::executor::block_on;
use twolane_core::JoinErrorKind;

const SOON: Duration = Duration::from_millis(1);
const NEVER: Duration = Duration::from_secs(3_600);

/// The awaiter is on no runtime: the timer is that of the I/O lane.
#[test]
fn the_time_is_up() {
    on_both(1, |lanes| {
        let cpu = lanes.cpu.handle();
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
    });
}

#[test]
fn the_job_ends_in_time() {
    on_both(1, |lanes| {
        let cpu = lanes.cpu.handle();
        assert_eq!(block_on(cpu.spawn_cpu(|| 42).within(NEVER)).unwrap(), 42);
        let panics = cpu.spawn_cpu(|| panic!("in time"));
        assert!(block_on(panics.within(NEVER)).unwrap_err().is_panic());
        drop(cpu.spawn(pending::<()>()).within(NEVER));
        wait_until(|| cpu.metrics().cancelled == 1);
        drop(lanes.cpu);
        // It needs no timer.
        let refused = block_on(cpu.spawn_cpu(|| ()).within(NEVER)).unwrap_err();
        assert_eq!(refused.kind(), JoinErrorKind::Shutdown);
        assert!(
            refused.to_string().contains("keep it in `main`"),
            "{refused}"
        );
    });
}

#[test]
fn a_call_says_shut_down() {
    on_both(1, |lanes| {
        let cpu = lanes.cpu.handle();
        lanes.cpu.shutdown_background();
        drop(lanes.cpu);
        let refused = cpu.spawn_cpu(|| ()).wait().unwrap_err().to_string();
        assert!(refused.contains("was shut down"), "{refused}");
        let full = cpu.try_reserve().unwrap_err().to_string();
        assert_eq!(full, refused);
    });
}
