//! What of the handle and of the submitter's surroundings do the stages and the source see?

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::support::{Lanes, lanes, lanes_with, thread_name};
use futures::{StreamExt, stream};
use twolane::stream::Buffered;
use twolane::{CpuIteratorExt, CpuStreamExt, Handle, Priority};

pub(crate) const INPUTS: u32 = 40;

/// Where the source of a stream is polled, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source {
    IoOwned,
    OnCpu,
    Iterator,
}

pub(crate) const SOURCES: [Source; 3] = [Source::IoOwned, Source::OnCpu, Source::Iterator];

/// A stream of which the source calls `pull`, and the stage `run`.
pub(crate) fn numbers<T: Send + 'static>(
    cpu: &Handle,
    source: Source,
    pull: impl FnMut() + Send + 'static,
    run: impl Fn() -> T + Send + Sync + 'static,
) -> Buffered<T> {
    in_window(4, cpu, source, pull, move |_| run())
}

pub(crate) fn in_window<T: Send + 'static>(
    items: usize,
    cpu: &Handle,
    source: Source,
    mut pull: impl FnMut() + Send + 'static,
    run: impl Fn(u32) -> T + Send + Sync + 'static,
) -> Buffered<T> {
    let inputs = (0..INPUTS).inspect(move |_| pull());
    if source == Source::Iterator {
        return inputs.on_cpu(cpu).map(run).buffered(items);
    }
    let stages = CpuStreamExt::on_cpu(stream::iter(inputs), cpu).map(run);
    match source {
        Source::OnCpu => stages.source_on_cpu().buffered(items),
        _ => stages.buffered(items),
    }
}

pub(crate) fn all<T>(lanes: &Lanes, stream: Buffered<T>) -> Vec<T> {
    lanes.io.block_on(stream.map(Result::unwrap).collect())
}

#[test]
fn stages_run_at_the_priority_of_the_handle_and_the_source_on_its_lane() {
    let priorities = [
        (Priority::High, "cpu-high-0"),
        (Priority::Normal, "cpu-0"),
        (Priority::Low, "cpu-low-0"),
    ];
    for limited in [false, true] {
        for source in SOURCES {
            for (priority, thread) in priorities {
                let lanes = lanes_with(1, |builder| match limited {
                    true => builder.queue_limit(priority, 1),
                    false => builder,
                });
                let cpu = lanes.cpu.handle().with_priority(priority);
                let (pulled, pulls) = mpsc::channel();
                let pull = move || pulled.send(thread_name()).unwrap();
                let run = || (thread_name(), Handle::current().priority());
                let ran = all(&lanes, numbers(&cpu, source, pull, run));
                assert_eq!(ran, vec![(thread.to_owned(), priority); INPUTS as usize]);
                let expected = if source == Source::IoOwned {
                    "io"
                } else {
                    thread
                };
                let pulls: Vec<_> = pulls.iter().collect();
                assert_eq!(pulls, vec![expected; INPUTS as usize], "{source:?}");
                for (other, _) in priorities {
                    let jobs = lanes.cpu.handle().with_priority(other).metrics();
                    assert_eq!(jobs.submitted > 0, other == priority, "{source:?}");
                }
            }
        }
    }
}

/// Everywhere where a stream calls its user: so a socket that is made there, and a task that is
/// spawned, belong to the I/O lane.
#[test]
fn the_current_handles_are_those_of_the_lane() {
    for source in SOURCES {
        let lanes = lanes(1);
        let cpu = lanes.cpu.handle().with_priority(Priority::Low);
        let io = lanes.io.handle().id();
        let check = move || {
            assert_eq!(Handle::current().priority(), Priority::Low);
            assert_eq!(tokio::runtime::Handle::current().id(), io);
        };
        assert_eq!(all(&lanes, numbers(&cpu, source, check, check)).len(), 40);
        let stages = (0..INPUTS).on_cpu(&cpu).map_init(check, move |(), n| {
            check();
            n
        });
        let stages = stages.flat_map(move |n| {
            check();
            std::iter::once(n).inspect(move |_| check())
        });
        let size = move |_: &u32| {
            check();
            1
        };
        let sized = stages.max_bytes(9, size, size).buffered(4);
        assert_eq!(all(&lanes, sized), Vec::from_iter(0..INPUTS));
    }
}

/// Also if a worker ends and another one begins: the pauses of the source make it so.
#[test]
fn there_are_as_many_states_as_threads_at_most() {
    for threads in [1, 2] {
        let lanes = lanes(threads);
        let made = Arc::new(AtomicUsize::new(0));
        let source = stream::unfold(0, |n| async move {
            if n % 10 == 0 {
                tokio::task::yield_now().await;
            }
            (n < 2_000).then_some((n, n + 1))
        });
        let count = made.clone();
        let counts = source
            .on_cpu(lanes.cpu.handle())
            .map_init(
                move || {
                    count.fetch_add(1, SeqCst);
                    0_usize
                },
                |ran, _| {
                    *ran += 1;
                    *ran
                },
            )
            .batch_time(Duration::from_micros(20))
            .buffered(64);
        let counts = all(&lanes, counts);
        let made = made.load(SeqCst);
        assert!((1..=threads).contains(&made), "{made}");
        // Each state counts from 1, without a gap: no two workers share one, and none
        // is lost.
        let begins = counts.iter().filter(|&&count| count == 1).count();
        assert_eq!(begins, made);
        let mut distinct = counts;
        distinct.sort_unstable();
        distinct.dedup();
        let longest = *distinct.last().unwrap();
        assert_eq!(distinct, Vec::from_iter(1..=longest));
    }
}
