//! Does a lane that has nothing to do leave the machine alone?
//!
//! It did not: the last worker of each priority that was ever
//! used woke once a second, for ever, to look for what a job might have left to
//! rayon. On a host with a hundred idle processes that is a hundred wake-ups a
//! second, and a core that never rests long. Any wait with a time limit that is
//! entered again when the limit has passed brings it back.

use crate::threads;
use std::time::{Duration, Instant};

use crate::support::{gives, lanes_with};
use twolane_core::Priority;

/// More than twice the second between those wakes.
const REST: Duration = Duration::from_millis(2_500);
/// What a job has left behind may be looked for, and a while.
const SETTLES_WITHIN: Duration = Duration::from_secs(20);

/// Sleeping is what is tested here.
#[test]
#[ignore = "counts what the kernel does: .ci/nightly"]
fn the_threads_of_an_idle_lane_do_not_wake() {
    let names = ["idle-a", "idle-b"];
    let lanes = names.map(|name| lanes_with(2, |builder| builder.thread_name(name)));
    // One has its own Tokio runtime, too.
    lanes[1].cpu.handle().tokio_handle().unwrap();
    for lanes in &lanes {
        for priority in [Priority::Normal, Priority::Low] {
            let cpu = lanes.cpu.handle().with_priority(priority);
            let tasks: Vec<_> = (0..20).map(|n| cpu.spawn_cpu(gives(n))).collect();
            for (n, task) in tasks.into_iter().enumerate() {
                assert_eq!(task.wait().unwrap(), n);
            }
            // One that rests and is woken, by the other lane.
            let future = cpu.spawn(async { twolane_core::spawn_io(async { 7 }).await.unwrap() });
            assert_eq!(future.wait().unwrap(), 7);
        }
    }

    // Each lane's threads: those of two priorities, and the control thread. The I/O
    // runtime's are not among them.
    let read = || names.map(threads::sleeps);
    let start = Instant::now();
    let mut before = read();
    for of_lane in &before {
        assert!(!of_lane.is_empty());
    }
    loop {
        std::thread::sleep(REST);
        let now = read();
        if now == before {
            break;
        }
        let woken: Vec<_> = (now.iter().flatten())
            .filter(|(thread, count)| !before.iter().any(|of| of.get(thread) == Some(count)))
            .collect();
        assert!(
            start.elapsed() < SETTLES_WITHIN,
            "an idle lane wakes still: {woken:?}"
        );
        before = now;
    }
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(read(), before, "a lane that had settled woke");

    // And it is all there when it is needed.
    for lanes in &lanes {
        for priority in [Priority::Normal, Priority::Low] {
            let cpu = lanes.cpu.handle().with_priority(priority);
            assert_eq!(cpu.spawn_cpu(gives(1)).wait().unwrap(), 1);
        }
    }
}
