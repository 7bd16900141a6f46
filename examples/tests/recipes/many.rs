//! `many_tasks`: the right results, jobs that end with their collection, and input that waits.

use std::cell::Cell;

use futures::stream;
use twolane::{CpuRuntime, Priority};

use crate::many_tasks::{
    as_they_come, borrow_in_a_job, borrow_on_a_plain_thread, in_order, within_the_limit,
};
use crate::support::Lanes;
use crate::{busy, fill, give_up, lanes_of, let_go};

fn texts() -> Vec<String> {
    (0..100).map(|n| "word ".repeat(n)).collect()
}

#[test]
fn the_results_are_right() {
    let Lanes { cpu: runtime, io } = lanes_of(CpuRuntime::new);
    let cpu = runtime.handle();
    io.block_on(async {
        let first = as_they_come(cpu, texts(), |words| words >= 99).await;
        assert_eq!(first.unwrap(), Some(99));
        let none = as_they_come(cpu, texts(), |words| words >= 100).await;
        assert_eq!(none.unwrap(), None);
        let ordered = in_order(cpu, texts()).await.unwrap();
        assert!(ordered.into_iter().eq(0..100));
        assert_eq!(borrow_in_a_job(cpu, texts()).await.unwrap(), (99, 0));
    });
    assert_eq!(borrow_on_a_plain_thread(cpu, &texts()).unwrap(), 4_950);
}

#[test]
fn queued_jobs_end_with_their_collection() {
    let Lanes { cpu: runtime, io } = lanes_of(CpuRuntime::new);
    let cpu = runtime.handle();
    let threads = busy(cpu);
    io.block_on(give_up(as_they_come(cpu, texts(), |_| true)));
    io.block_on(give_up(in_order(cpu, texts())));
    let_go(threads);
    runtime.shutdown().wait();
    assert_eq!(cpu.metrics().cancelled, 200);
}

#[test]
fn the_input_waits_for_the_queue() {
    let limited = || {
        CpuRuntime::builder()
            .queue_limit(Priority::Normal, 2)
            .build()
    };
    let Lanes { cpu: runtime, io } = lanes_of(limited);
    let cpu = runtime.handle();
    let sum = within_the_limit(cpu, stream::iter(texts()));
    assert_eq!(io.block_on(sum).unwrap(), 4_950);

    let read = Cell::new(0);
    let input = stream::iter(texts().into_iter().inspect(|_| read.set(read.get() + 1)));
    let permits = fill(cpu);
    assert_eq!(permits.len(), 2);
    io.block_on(give_up(within_the_limit(cpu, input)));
    assert_eq!(read.get(), 0);
    drop(permits);
}
