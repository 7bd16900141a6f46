//! How do streams get on with a queue that has a limit?

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

use crate::channel;
use crate::context::INPUTS;
use crate::gate::gate;
use crate::progress::{all, are_whole, each_source};
use crate::support::wait::wait_until;
use crate::support::{Lanes, lanes_with};
use futures::{StreamExt, stream};
use tokio::sync::oneshot;
use twolane::{CpuIteratorExt, CpuStreamExt, Handle, Priority};

fn permits(threads: usize, permits: usize) -> Lanes {
    lanes_with(threads, |builder| {
        builder.queue_limit(Priority::Normal, permits)
    })
}

fn one_permit(threads: usize) -> Lanes {
    permits(threads, 1)
}

/// Workers took permits, which the jobs held that read the streams: the pump waited for a
/// job, and the job for an item.
#[test]
fn jobs_with_all_permits_read_streams_that_were_started_outside() {
    for (threads, limit) in [(1, 1), (2, 1), (2, 3)] {
        for on_cpu in [false, true] {
            let (cpu, lanes) = permits(threads, limit).and_handle();
            let mut readers = Vec::new();
            for _ in 0..limit {
                let (sender, source) = channel();
                let mut stages = source.on_cpu(&cpu).map(|n: u32| n);
                if on_cpu {
                    stages = stages.source_on_cpu();
                }
                let numbers = stages.buffered(4);
                let (started, starts) = oneshot::channel();
                let reader = cpu.spawn(async move {
                    started.send(()).unwrap();
                    all(numbers).await
                });
                lanes.io.block_on(starts).unwrap();
                readers.push((reader, sender));
            }
            assert!(cpu.try_reserve().is_err(), "the readers hold all permits");
            for (reader, sender) in readers {
                (0..10).for_each(|n| sender.send(n).unwrap());
                drop(sender);
                assert_eq!(reader.wait().unwrap(), Vec::from_iter(0..10));
            }
        }
    }
}

/// Neither its workers nor the job that calls an iterator need a permit, or have the deadline of the
/// handle: a worker that came too late left the reader waiting, or panicking.
#[test]
fn a_stream_goes_on_in_a_queue_that_is_full_and_after_the_deadline() {
    let (cpu, lanes) = one_permit(1).and_handle();
    let permit = cpu.try_reserve().unwrap();
    for cpu in [cpu.with_deadline(Instant::now()), cpu.clone()] {
        are_whole(&lanes, each_source(&cpu));
    }
    assert_eq!(cpu.metrics().permits_in_use, 1);
    drop(permit);
}

/// While its stages run, while its source is pending, and while its window is full.
#[test]
fn an_open_stream_leaves_the_permits_to_others() {
    let (cpu, lanes) = one_permit(2).and_handle();
    let (sender, source) = channel();
    let silent = source.on_cpu(&cpu).map(|n: u32| n).buffered(4);
    let full = each_source(&cpu);
    let (gate, stay) = gate();
    let busy = (0..1).on_cpu(&cpu).map(move |n| {
        stay();
        n
    });
    let busy = busy.buffered(4);
    gate.is_reached();
    assert_eq!(cpu.metrics().permits_in_use, 0);
    let next = cpu.try_reserve().unwrap().spawn_cpu(|| 1);
    assert_eq!(next.wait().unwrap(), 1);
    drop((sender, gate));
    are_whole(&lanes, full);
    let few = lanes.io.block_on(silent.chain(busy).count());
    assert_eq!(few, 1);
}

/// What bounds a stream is its window and the number of threads, in a queue with a limit
/// as in one without. A lane that is stuck holds no more of it.
#[test]
fn a_stream_has_no_more_than_its_window_and_a_worker_for_each_thread() {
    const WINDOW: usize = 8;
    for threads in [1, 2] {
        let (cpu, lanes) = one_permit(threads).and_handle();
        let (gate, stay) = gate();
        let pulled = Arc::new(AtomicUsize::new(0));
        let count = pulled.clone();
        let source = stream::repeat_with(move || count.fetch_add(1, SeqCst));
        let numbers = CpuStreamExt::on_cpu(source, &cpu);
        let numbers = numbers.map(move |_| stay());
        let numbers = numbers.buffered(WINDOW);
        wait_until(|| pulled.load(SeqCst) >= WINDOW);
        let now = cpu.metrics();
        assert!(now.queued + now.running <= threads as u64, "{now:?}");
        assert_eq!(now.permits_in_use, 0);
        drop(gate);
        lanes.io.block_on(numbers.take(100).count());
    }
}

/// A job that waits for the stream that it has made must not wait for a permit that it
/// holds itself.
#[test]
fn a_stream_inside_the_job_with_the_only_permit() {
    for threads in [1, 2] {
        let lanes = one_permit(threads);
        let inside = lanes.cpu.spawn(async {
            for numbers in each_source(&Handle::current()) {
                assert_eq!(all(numbers).await, Vec::from_iter(0..INPUTS));
            }
        });
        inside.wait().unwrap();
    }
}

/// The job makes them, and others read them. The pump, at a level without a limit, kept the permit
/// of the job as long as the stream lived.
#[test]
fn a_stream_does_not_keep_the_permit_of_its_job() {
    for priority in [Priority::Normal, Priority::High] {
        let (cpu, lanes) = one_permit(1).and_handle();
        let made = cpu.reserve().wait().unwrap().spawn_cpu(move || {
            let cpu = Handle::current().with_priority(priority);
            each_source(&cpu)
        });
        let streams = made.wait().unwrap();
        // Their windows are full, and the permit is back.
        drop(cpu.reserve().wait().unwrap());
        are_whole(&lanes, streams);
        drop(cpu.reserve().wait().unwrap());
    }
}

/// The pump submits its workers without permits; its source is the user's, and did so, too.
#[test]
fn a_source_on_the_io_lane_needs_permits_if_its_stream_was_started_outside() {
    let (cpu, lanes) = one_permit(1).and_handle();
    let held = cpu.try_reserve().unwrap();
    let source = stream::iter(0..10).map(|_| Handle::current().try_reserve().is_ok());
    let stream = source.on_cpu(&cpu).map(u32::from).buffered(4);
    assert_eq!(lanes.io.block_on(all(stream)), [0; 10]);
    // Started inside, it is a part of the job.
    drop(held);
    let inside = cpu.spawn(async {
        let source = stream::iter(0..10).map(|_| Handle::current().try_reserve().is_ok());
        all(source.on_cpu(&Handle::current()).map(u32::from).buffered(4)).await
    });
    assert_eq!(inside.wait().unwrap(), [1; 10]);
}

#[test]
#[should_panic(expected = "`buffered(0)`: the window of a stream is at least 1 item")]
fn a_window_of_nothing_is_refused() {
    let lanes = permits(1, 1);
    drop((0..3).on_cpu(lanes.cpu.handle()).buffered(0));
}
