//! How often a lane's threads are woken: a binary of its own, since what else runs in
//! the process takes turns from the threads whose wakes are counted.

#![cfg(target_os = "linux")]

mod beside_a_join;
mod first_jobs;
mod idle_lane;

#[path = "../support/mod.rs"]
mod support;
#[path = "../support/threads.rs"]
mod threads;

/// A lane whose control thread does not interrupt cores: jobs wake it for that too, on a lazy
/// kernel and while the kernel is not measured.
fn lanes_without_interrupts(
    backend: twolane::Backend,
    workers: usize,
    name: &str,
) -> support::Lanes {
    support::lanes_with(backend, workers, |builder| {
        builder
            .thread_name(name)
            .interrupt_cores_every(std::time::Duration::ZERO)
    })
}
