//! Permits of more than one: what large jobs take of a queue's limit.

use std::sync::mpsc;

use super::admission::{limited, look};
use crate::support::{BOTH, time_limit};

#[test]
fn a_large_job_takes_its_share_and_gives_it_back() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = limited(backend, 8);
        let cpu = lanes.cpu.handle();
        let large = cpu.try_reserve_many(6).unwrap();
        assert_eq!(cpu.metrics().permits_in_use, 6);
        assert!(cpu.try_reserve_many(3).unwrap_err().is_queue_full());
        // One that fits, by any form.
        assert_eq!(cpu.spawn_cpu(|| 1).wait().unwrap(), 1);
        let (release, wait) = mpsc::channel::<()>();
        let task = large.spawn_cpu(move || wait.recv());
        let mut waits = cpu.reserve_many(4);
        assert!(look(&mut waits).is_pending());
        drop(release);
        task.wait().unwrap().unwrap_err();
        let permit = lanes.io.block_on(waits).unwrap();
        assert_eq!(permit.spawn_cpu(|| 2).wait().unwrap(), 2);
        assert_eq!(cpu.metrics().permits_in_use, 0, "{backend:?}");
    }
}

/// It would wait for ever.
#[test]
fn what_never_fits_is_refused_at_once() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = limited(backend, 8);
        let cpu = lanes.cpu.handle();
        assert!(cpu.reserve_many(9).wait().unwrap_err().is_queue_full());
        assert!(cpu.try_reserve_many(9).unwrap_err().is_queue_full());
        drop(cpu.reserve_many(8).wait().unwrap());
        assert_eq!(cpu.metrics().rejected, 2, "{backend:?}");
        // Without a limit all fits.
        let high = cpu.with_priority(twolane::Priority::High);
        assert_eq!(
            high.reserve_many(u32::MAX)
                .wait()
                .unwrap()
                .spawn_cpu(|| 3)
                .wait()
                .unwrap(),
            3
        );
    }
}
