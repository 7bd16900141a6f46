//! How far ahead of its consumer does a stream read?

use std::iter;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};

use crate::buffered;
use crate::support::wait::wait_for_idle;
use crate::support::{lanes, on_both, with_both};
use futures::{StreamExt, stream};
use twolane::{CpuIteratorExt, CpuStreamExt};

const INPUTS: usize = 500;

/// Input k + window is not pulled before output k is taken.
#[test]
fn inputs_are_pulled_as_far_as_the_window() {
    with_both(|backend| {
        for (threads, items) in [(1, 1), (2, 1), (2, 2), (2, 7), (2, 64)] {
            for (is_iterator, ordered) in
                [(true, true), (true, false), (false, true), (false, false)]
            {
                let lanes = lanes(backend, threads);
                let cpu = lanes.cpu.handle();
                let taken = Arc::new(AtomicUsize::new(0));
                let seen = taken.clone();
                let pull = move |n: usize| {
                    assert!(n < seen.load(SeqCst) + items, "{n}");
                    n
                };
                // The consumer counts an output before it asks for it: so the source never
                // sees fewer than are taken.
                let mut numbers = match is_iterator {
                    true => {
                        let source = (0..INPUTS).map(pull).on_cpu(&cpu);
                        buffered(source, items, ordered)
                    }
                    false => {
                        let source = stream::iter(0..INPUTS).map(pull);
                        buffered(CpuStreamExt::on_cpu(source, &cpu), items, ordered)
                    }
                };
                lanes.io.block_on(async {
                    for _ in 0..INPUTS {
                        taken.fetch_add(1, SeqCst);
                        numbers.next().await.unwrap().unwrap();
                    }
                    assert!(numbers.next().await.is_none());
                });
            }
        }
    });
}

/// Its room comes back with its last output, also if a worker hands over as many outputs as
/// there were inputs.
#[test]
fn an_input_of_two_outputs_is_taken_with_the_second() {
    const OUTPUTS: usize = 2;
    for items in [8, 10] {
        on_both(1, |lanes| {
            let taken = Arc::new(AtomicUsize::new(0));
            let most = Arc::new(AtomicUsize::new(0));
            let (seen, under_way) = (taken.clone(), most.clone());
            let source = (0..INPUTS).inspect(move |n| {
                under_way.fetch_max(n + 1 - seen.load(SeqCst), SeqCst);
            });
            let stages = source.on_cpu(&lanes.cpu.handle()).flat_map(|n| {
                // The one behind it has none.
                let outputs = if n % OUTPUTS == 0 { OUTPUTS } else { 0 };
                iter::repeat_n(n, outputs)
            });
            let mut numbers = stages.buffered(items);
            lanes.io.block_on(async {
                for n in 0..INPUTS {
                    if n % OUTPUTS == 0 {
                        // What can run has run, so its outputs come in large pieces.
                        wait_for_idle(&lanes.cpu.handle());
                    }
                    // With the second one, the one behind is taken, too.
                    taken.store((n + 1) / OUTPUTS * OUTPUTS, SeqCst);
                    let number = numbers.next().await.unwrap().unwrap();
                    assert_eq!(number, n / OUTPUTS * OUTPUTS);
                }
                assert!(numbers.next().await.is_none());
            });
            assert!(most.load(SeqCst) <= items, "{most:?} of {items}");
        });
    }
}

/// The room of an output came back when the whole piece in which it came was taken. A
/// consumer that feeds its own source waited for ever.
#[test]
fn the_room_of_taken_outputs_comes_back_without_another_poll() {
    with_both(|backend| {
        // At the latest, an eighth of the window comes back at once.
        for (items, part) in [(4, 1), (8, 1), (15, 1), (64, 8)] {
            let lanes = lanes(backend, 2);
            let (pulled, pulls) = mpsc::channel();
            let source = (0..).inspect(move |_: &usize| _ = pulled.send(()));
            let mut numbers = source
                .on_cpu(&lanes.cpu.handle())
                .map(|n| n)
                .buffered(items);
            // Less than a part may be kept back.
            pulls.iter().take(items - (part - 1)).for_each(drop);
            for _ in 0..20 {
                for _ in 0..part {
                    lanes.io.block_on(numbers.next()).unwrap().unwrap();
                }
                pulls.iter().take(part).for_each(drop);
            }
        }
    });
}

/// Their sum overflowed where no panic was caught.
#[test]
fn sizes_without_bounds() {
    with_both(|backend| {
        for limit in [1, usize::MAX] {
            for (input, output) in [(1, usize::MAX), (usize::MAX, 1), (usize::MAX, usize::MAX)] {
                for items in [2, 8] {
                    let lanes = lanes(backend, 2);
                    let stages = (0..100).on_cpu(&lanes.cpu.handle()).map(|n| n);
                    let stages = stages.max_bytes(limit, move |_| input, move |_| output);
                    let numbers = stages.buffered(items).map(Result::unwrap);
                    let all: Vec<_> = lanes.io.block_on(numbers.collect());
                    assert_eq!(all, Vec::from_iter(0..100));
                }
            }
        }
    });
}

/// The bytes of the inputs that were pulled, until they have run, and of the outputs, until
/// they are taken. What does not fit any more is pulled, and waits. An input that is larger
/// than the limit goes alone.
#[test]
fn bytes_are_bounded_and_a_large_input_goes_alone() {
    const LIMIT: usize = 10;
    for threads in [1, 2] {
        on_both(threads, |lanes| {
            let cpu = lanes.cpu.handle();
            // The outputs that the consumer has not asked for. It subtracts before it takes:
            // the window gives an output back while it is taken.
            let held = Arc::new(AtomicIsize::new(0));
            let size = |n: usize| if n % 50 == 7 { 3 * LIMIT } else { n % 6 };
            let at_stage = held.clone();
            let mut numbers = (0..INPUTS)
                .on_cpu(&cpu)
                .map(move |n| {
                    let own = size(n) as isize;
                    let held = at_stage.fetch_add(own, SeqCst) + own;
                    assert!(held <= LIMIT as isize || held == own, "{held}");
                    n
                })
                .max_bytes(LIMIT, move |&n| size(n), move |&n| size(n))
                .buffered(64);
            lanes.io.block_on(async {
                for n in 0..INPUTS {
                    held.fetch_sub(size(n) as isize, SeqCst);
                    assert_eq!(numbers.next().await.unwrap().unwrap(), n);
                }
                assert!(numbers.next().await.is_none());
            });
        });
    }
}
