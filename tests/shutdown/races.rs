//! What runs against a shutdown, or a second one, ends in exactly one way.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use crate::support::{Stuck, on_both};
use twolane::Remaining;

/// From many threads at once, in all forms, while a job runs.
#[test]
fn shutdown_twice_and_concurrently() {
    on_both(1, |lanes| {
        let cpu = Arc::new(lanes.cpu);
        let stuck = Stuck::<()>::start(&cpu.handle());
        let together = Arc::new(Barrier::new(9));
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let (cpu, together) = (cpu.clone(), together.clone());
                std::thread::spawn(move || {
                    together.wait();
                    match n % 3 {
                        0 => cpu.shutdown().wait(),
                        1 => cpu.shutdown_timeout(Duration::from_secs(3600)).wait(),
                        _ => {
                            cpu.shutdown_background();
                            Remaining::default()
                        }
                    }
                })
            })
            .collect();
        together.wait();
        stuck.end();
        for thread in threads {
            assert!(thread.join().unwrap().is_empty());
        }
    });
}
