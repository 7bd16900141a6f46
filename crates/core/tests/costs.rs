//! What a queued job costs in memory, counted: so that it stays what the docs
//! say. (What it costs in time is for the benches.)

mod support;

use std::hint::black_box;

use alloc_tracker::{Allocator, Session};
use support::{Stuck, lanes, time_limit};
use twolane_core::{Handle, Task};

#[global_allocator]
static ALLOCATOR: Allocator<std::alloc::System> = Allocator::system();

const JOBS: usize = 10_000;

/// Allocations and bytes for each job that `submit` makes while the lane's only
/// thread is held: nothing else allocates.
fn each<T: Send + 'static>(submit: impl Fn(&Handle, usize) -> Task<T>) -> (f64, f64) {
    let (handle, _lanes) = lanes(1).and_handle();
    let held = Stuck::<()>::start(&handle);
    let mut tasks = Vec::with_capacity(JOBS);
    let session = Session::new().no_stdout().no_file();
    let queued = session.operation("queued");
    {
        let _span = queued.measure_process().iterations(JOBS as u64);
        tasks.extend((0..JOBS).map(|i| submit(&handle, i)));
    }
    let report = session.to_report();
    let (_, figures) = report.operations().next().unwrap();
    let found = (figures.allocations().unwrap(), figures.bytes().unwrap());
    held.end();
    for task in tasks {
        task.wait().unwrap();
    }
    found
}

/// One test: what another allocates meanwhile would be counted.
#[test]
fn a_queued_job_is_one_allocation_and_a_future_one_more() {
    let _limit = time_limit();
    // A closure of 16 bytes, its output, and all that goes with it.
    let closure = |handle: &Handle, i: usize| handle.spawn_cpu(move || black_box(i + JOBS));
    let future = |handle: &Handle, i: usize| handle.spawn(async move { black_box(i + JOBS) });

    let (allocations, bytes) = each(closure);
    assert!(
        allocations <= 1.1 && bytes <= 200.0,
        "{allocations} allocations, {bytes} bytes a closure"
    );
    let (allocations, bytes) = each(future);
    assert!(
        allocations <= 2.1 && bytes <= 250.0,
        "{allocations} allocations, {bytes} bytes a future"
    );
}
