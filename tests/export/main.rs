//! Do the exporters say what the snapshot says, and what the test has counted itself?

mod facade;
mod io_lane;
mod prometheus;
mod scrape;

#[path = "../../crates/core/tests/support/mod.rs"]
mod support;

use std::sync::mpsc;

use support::{Lanes, Stuck, lanes_with};
use tokio::sync::oneshot;
use twolane::{JoinErrorKind, Permit, Priority, Task};

const LIMIT: usize = 5;

/// A lane with at least one of each thing that is counted: see the comments.
struct Busy {
    lanes: Lanes,
    _jobs: [Task<()>; 3],
    _ends: (mpsc::Sender<()>, oneshot::Sender<()>),
    _permit: Permit,
}

fn busy() -> Busy {
    let (cpu, lanes) = lanes_with(1, |builder| {
        builder
            .queue_limit(Priority::Normal, LIMIT)
            .histograms(true)
    })
    .and_handle();
    // Ends: three completed and one panicked.
    for _ in 0..3 {
        cpu.spawn_cpu(|| ()).wait().unwrap();
    }
    cpu.spawn_cpu(|| panic!("planned")).wait().unwrap_err();
    let (started, is_suspended) = mpsc::channel();
    let (let_go, wait) = oneshot::channel::<()>();
    let suspended = cpu.spawn(async move {
        started.send(()).unwrap();
        wait.await.unwrap();
    });
    is_suspended.recv().unwrap();
    let (running, end) = Stuck::start(&cpu).split();
    let queued = cpu.spawn_cpu(|| ());
    // It keeps its permit: its turn has not come.
    cpu.spawn_cpu(|| ()).abort();
    let permit = cpu.try_reserve().unwrap();
    for _ in 0..2 {
        assert!(cpu.spawn_cpu(|| ()).wait().unwrap_err().kind() == JoinErrorKind::QueueFull);
    }
    let low = cpu.with_priority(Priority::Low);
    low.spawn_cpu(|| ()).wait().unwrap();
    Busy {
        lanes,
        _jobs: [suspended, running, queued],
        _ends: (end, let_go),
        _permit: permit,
    }
}
