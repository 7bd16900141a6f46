//! How do streams share a queue with a limit?

use crate::progress::{all, each_source};
use crate::support::{BOTH, Lanes, lanes_with, time_limit};
use crate::{channel, window};
use futures::StreamExt;
use twolane::{Backend, CpuIteratorExt, CpuStreamExt, Handle, Priority};

fn one_permit(backend: Backend, threads: usize) -> Lanes {
    lanes_with(backend, threads, |builder| {
        builder.queue_limit(Priority::Normal, 1)
    })
}

/// An iterator is read by jobs, which wait for a permit as workers do.
#[test]
fn an_iterator_waits_for_a_permit() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = one_permit(backend, 1);
        let cpu = lanes.cpu.handle();
        let permit = cpu.try_admit().unwrap();
        let mut numbers = (0..10).on_cpu(&cpu).map(|n| n).buffered(window(4));
        lanes.io.block_on(async {
            assert!(futures::poll!(numbers.next()).is_pending());
            drop(permit);
            for n in 0..10 {
                assert_eq!(numbers.next().await.unwrap().unwrap(), n);
            }
            assert!(numbers.next().await.is_none());
            // The permit is back.
            drop(cpu.admit().await.unwrap());
        });
    }
}

/// The job of an iterator kept its permit while its window was full, so nothing else came
/// into the queue, and of two streams in a queue of one the second never began.
#[test]
fn a_full_window_keeps_no_permit() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = one_permit(backend, 1);
        let cpu = lanes.cpu.handle();
        let evens = (0..100).on_cpu(&cpu).map(|n| 2 * n).buffered(window(4));
        let odds = (0..100).on_cpu(&cpu).map(|n| 2 * n + 1).buffered(window(4));
        let both = odds.zip(evens);
        let ones = both.map(|(odd, even)| odd.unwrap() - even.unwrap());
        assert_eq!(lanes.io.block_on(ones.collect::<Vec<_>>()), [1; 100]);
        let next = cpu.admit().wait().unwrap().spawn_cpu(|| 1);
        assert_eq!(next.wait().unwrap(), 1);
    }
}

/// A job that waits for the stream that it has made must not wait for a permit that it
/// holds itself.
#[test]
fn a_stream_inside_the_job_with_the_only_permit() {
    let _limit = time_limit();
    for backend in BOTH {
        for threads in [1, 2] {
            let lanes = one_permit(backend, threads);
            let cpu = lanes.cpu.handle();
            let inside = cpu.spawn(async {
                for numbers in each_source(&Handle::current(), 100) {
                    assert_eq!(all(numbers).await, Vec::from_iter(0..100));
                }
            });
            inside.wait().unwrap();
            // The job makes them, and others read them. Their readers need permits of
            // their own, one after the other.
            let made = cpu.admit().wait().unwrap();
            let made = made.spawn_cpu(|| each_source(&Handle::current(), 100));
            for numbers in made.wait().unwrap() {
                let all = lanes.io.block_on(all(numbers));
                assert_eq!(all, Vec::from_iter(0..100));
            }
            // The permit is back.
            drop(cpu.admit().wait().unwrap());
        }
    }
}

/// The job's permit came from a level with a limit, and the pump, at a level without one,
/// kept it as long as the stream lived.
#[test]
fn a_stream_at_an_unlimited_priority_keeps_no_inherited_permit() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = one_permit(backend, 1);
        let cpu = lanes.cpu.handle();
        let made = cpu.admit().wait().unwrap();
        let made = made.spawn_cpu(|| {
            let high = Handle::current().with_priority(Priority::High);
            each_source(&high, 100)
        });
        let streams = made.wait().unwrap();
        // Their windows are full.
        drop(cpu.admit().wait().unwrap());
        for numbers in streams {
            let all = lanes.io.block_on(all(numbers));
            assert_eq!(all, Vec::from_iter(0..100));
        }
        drop(cpu.admit().wait().unwrap());
    }
}

/// Of several streams in a queue of one each gets on while the others have a full window,
/// or wait for their source.
#[test]
fn streams_share_a_queue_of_one() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = one_permit(backend, 1);
        let cpu = lanes.cpu.handle();
        let mut streams = each_source(&cpu, 100);
        lanes.io.block_on(async {
            for n in 0..100 {
                for numbers in &mut streams {
                    assert_eq!(numbers.next().await.unwrap().unwrap(), n);
                }
            }
            for numbers in &mut streams {
                assert!(numbers.next().await.is_none());
            }
        });
        drop(cpu.admit().wait().unwrap());
    }
}

/// The job that reads a stream kept its permit while the source was pending: another
/// stream, or what the source waited for, never came into a queue of one.
#[test]
fn a_source_that_is_pending_keeps_no_permit() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = one_permit(backend, 1);
        let cpu = lanes.cpu.handle();
        let (senders, mut streams): (Vec<_>, Vec<_>) = (0..2)
            .map(|_| {
                let (sender, source) = channel();
                let source = source.on_cpu(&cpu).source_on_cpu();
                (sender, source.map(|n: u32| n).buffered(window(4)))
            })
            .unzip();
        for n in 0..10 {
            for (sender, numbers) in senders.iter().zip(&mut streams) {
                // A job of the same queue sends what the source waits for.
                let (permit, sender) = (cpu.admit().wait().unwrap(), sender.clone());
                permit
                    .spawn_cpu(move || sender.send(n).unwrap())
                    .wait()
                    .unwrap();
                let next = lanes.io.block_on(numbers.next());
                assert_eq!(next.unwrap().unwrap(), n);
            }
        }
        drop(senders);
        for numbers in &mut streams {
            assert!(lanes.io.block_on(numbers.next()).is_none());
        }
    }
}
