//! Permits of more than one: what large jobs take of a queue's limit.

use std::sync::mpsc;

use super::admission::{limited, look};
use crate::support::with_both;

#[test]
fn a_large_job_takes_its_share_and_gives_it_back() {
    with_both(|backend| {
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
        assert_eq!(cpu.metrics().permits_in_use, 0);
    });
}

/// It would wait for ever.
#[test]
fn what_never_fits_is_refused_at_once() {
    with_both(|backend| {
        let lanes = limited(backend, 8);
        let cpu = lanes.cpu.handle();
        let error = cpu.reserve_many(9).wait().unwrap_err();
        assert!(error.is_too_large() && !error.is_unavailable(), "{error}");
        assert!(
            error.to_string().contains("a weight of 9") && error.to_string().contains("limit of 8")
        );
        assert!(cpu.try_reserve_many(u32::MAX).unwrap_err().is_too_large());
        drop(cpu.reserve_many(8).wait().unwrap());
        assert_eq!(cpu.metrics().rejected, 2);
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
    });
}

/// Tokio's semaphore grants zero permits at once, also on a full queue and past those that wait.
#[test]
fn a_weight_of_nothing_counts_one() {
    with_both(|backend| {
        let lanes = limited(backend, 2);
        let cpu = lanes.cpu.handle();
        let one = cpu.try_reserve_many(0).unwrap();
        assert_eq!(cpu.metrics().permits_in_use, 1);
        let all = cpu.try_reserve().unwrap();
        assert!(cpu.try_reserve_many(0).unwrap_err().is_queue_full());
        let mut waits = cpu.reserve_many(0);
        assert!(look(&mut waits).is_pending());
        drop(one);
        assert!(look(&mut waits).is_ready());
        drop(all);
    });
}

/// In the order of their coming: a small one does not pass. One that leaves gives back what it
/// was given.
#[test]
fn a_large_waiter_is_not_passed() {
    with_both(|backend| {
        let lanes = limited(backend, 4);
        let cpu = lanes.cpu.handle();
        let mut held: Vec<_> = (0..4).map(|_| cpu.try_reserve().unwrap()).collect();
        let (mut large, mut small) = (cpu.reserve_many(3), cpu.reserve());
        assert!(look(&mut large).is_pending());
        assert!(look(&mut small).is_pending());
        held.truncate(2);
        assert!(look(&mut small).is_pending());
        assert!(cpu.try_reserve().unwrap_err().is_queue_full());
        drop(large);
        assert!(look(&mut small).is_ready());
        drop(held);
        assert_eq!(cpu.metrics().permits_in_use, 0);
    });
}
