//! Which task does a worker of Tokio's keep to itself?
//!
//! Relied on in `crates/core/src/pool/tokio/mod.rs` (`notify`): only the latest that was spawned on it (the
//! LIFO slot), which it polls next. Another worker can take any other. So the lane spawns an
//! empty task after a drain task, and a drain task lets what a job has spawned go before the
//! next job. If a worker keeps more than one task, a job that is submitted by a job that
//! computes waits for the end of that computation, while another worker sleeps. Once other
//! workers can take the latest task too, the empty one can go. (`tests/alone` counts how often the
//! other thread takes the drain task of a job.)

use std::sync::mpsc;

use crate::support::{Stuck, lanes, time_limit};
use twolane_core::{Backend, in_cpu_context};

/// What a job spawns in the CPU context is polled before the next job, which may take
/// long, since another thread can't take it.
#[test]
fn what_a_job_spawns_with_tokio_goes_before_the_next() {
    let _limit = time_limit();
    let lanes = lanes(Backend::Runtime, 2);
    let other = Stuck::start(lanes.cpu.handle());
    for _ in 0..100 {
        let (ran, has_run) = mpsc::channel();
        let spawns = async move { drop(tokio::spawn(async move { ran.send(()) })) };
        lanes.cpu.spawn(in_cpu_context(spawns)).detach();
        let next = lanes.cpu.spawn_cpu(move || has_run.recv().is_ok());
        assert!(next.wait().unwrap());
    }
    other.end();
}
