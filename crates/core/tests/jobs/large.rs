//! How large may a closure, a future and an output be? As large as for Tokio's `spawn_blocking`: a
//! move takes as much of the stack, and a lane's thread moves a closure once, an output a few times.
//!
//! A closure that captured 192 KiB overflowed the 2 MiB of a lane's thread, which ends the process:
//! so does this test binary where one of these fails. (The submitter's stack is its own affair.)

use std::thread;

use crate::support::lanes;
use twolane_core::Task;

const CAPTURED: usize = 1 << 20;
/// In an unoptimized build. Tokio's own tasks can do no more.
const RETURNED: usize = 64 << 10;

fn is_whole<const N: usize>(bytes: [u8; N]) -> bool {
    bytes.iter().all(|byte| *byte == 1)
}

/// With a stack on which any number of copies has room.
fn on_large_stack(test: impl FnOnce() + Send) {
    let large = thread::Builder::new().stack_size(256 << 20);
    thread::scope(|scope| large.spawn_scoped(scope, test).unwrap().join().unwrap());
}

#[test]
fn what_a_job_captures_may_fill_half_of_a_stack() {
    let (cpu, lanes) = lanes(1).and_handle();
    on_large_stack(|| {
        let large = [1_u8; CAPTURED];
        let permit = || cpu.try_reserve().unwrap();
        let tasks: [Task<bool>; 7] = [
            cpu.spawn_cpu(move || is_whole(large)),
            cpu.spawn_cpu_with(move |_| Ok(is_whole(large))),
            cpu.spawn(async move { large[CAPTURED - 1] == 1 }),
            permit().spawn_cpu(move || is_whole(large)),
            permit().spawn_cpu_with(move |_| Ok(is_whole(large))),
            permit().spawn(async move { large[0] == 1 }),
            cpu.spawn_io(async move { large[0] == 1 }),
        ];
        for task in tasks {
            assert!(task.wait().unwrap());
        }
        drop(cpu.spawn_cpu(move || is_whole(large)));
    });
    assert!(lanes.cpu.shutdown().wait().is_empty());
}

#[test]
fn an_output_may_be_as_large_as_that_of_a_tokio_task() {
    let (cpu, _lanes) = lanes(1).and_handle();
    on_large_stack(|| {
        let tasks = [
            cpu.spawn_cpu(|| [1_u8; RETURNED]),
            cpu.spawn_cpu_with(|_| Ok([1_u8; RETURNED])),
            cpu.spawn(async { [1_u8; RETURNED] }),
            cpu.spawn_io(async { [1_u8; RETURNED] }),
        ];
        for task in tasks {
            assert!(is_whole(task.wait().unwrap()));
        }
    });
}
