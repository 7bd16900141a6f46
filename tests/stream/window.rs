//! How far ahead of its consumer does a stream read? (No input behind the window is pulled: `storm`
//! looks at each.)

use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};

use crate::support::lanes;
use futures::StreamExt;
use twolane::CpuIteratorExt;

const INPUTS: usize = 500;

/// The room of an output came back when the whole piece in which it came was taken. A
/// consumer that feeds its own source waited for ever.
#[test]
fn the_room_of_taken_outputs_comes_back_without_another_poll() {
    // At the latest, an eighth of the window comes back at once.
    for (items, part) in [(4, 1), (8, 1), (15, 1), (64, 8)] {
        let lanes = lanes(2);
        let (pulled, pulls) = mpsc::channel();
        let source = (0..).inspect(move |_: &usize| _ = pulled.send(()));
        let mut numbers = source.on_cpu(lanes.cpu.handle()).map(|n| n).buffered(items);
        // Less than a part may be kept back.
        pulls.iter().take(items - (part - 1)).for_each(drop);
        for _ in 0..20 {
            for _ in 0..part {
                lanes.io.block_on(numbers.next()).unwrap().unwrap();
            }
            pulls.iter().take(part).for_each(drop);
        }
    }
}

/// Their sum overflowed where no panic was caught.
#[test]
fn sizes_without_bounds() {
    for limit in [1, usize::MAX] {
        for (input, output) in [(1, usize::MAX), (usize::MAX, 1), (usize::MAX, usize::MAX)] {
            for items in [2, 8] {
                let lanes = lanes(2);
                let stages = (0..100).on_cpu(lanes.cpu.handle()).map(|n| n);
                let stages = stages.max_bytes(limit, move |_| input, move |_| output);
                let numbers = stages.buffered(items).map(Result::unwrap);
                let all: Vec<_> = lanes.io.block_on(numbers.collect());
                assert_eq!(all, Vec::from_iter(0..100));
            }
        }
    }
}

/// The bytes of the inputs that were pulled, until they have run, and of the outputs, until
/// they are taken. What does not fit any more is pulled, and waits. An input that is larger
/// than the limit goes alone.
#[test]
fn bytes_are_bounded_and_a_large_input_goes_alone() {
    const LIMIT: usize = 10;
    for threads in [1, 2] {
        let (cpu, lanes) = lanes(threads).and_handle();
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
    }
}
