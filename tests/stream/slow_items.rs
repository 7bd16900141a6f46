//! Do the outputs of quick items come while a slow one behind them runs?
//!
//! A worker collects outputs and hands them over together. An item that took long joined
//! the batch of the quick ones before it, and their outputs came after it: of items of 0 and
//! 400 ms the first output came after 400 ms, on two threads, ordered or not.
//!
//! The slow item stays until the outputs before it are there, so where one waits the test hangs.

use std::sync::{Arc, Barrier};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use crate::gate::{Gate, gate};
use crate::support::turns::current_thread;
use crate::support::{cpu_lane, lanes};
use crate::{buffered, channel, spin};
use futures::executor::block_on;
use futures::{StreamExt, stream};
use twolane::stream::Buffered;
use twolane::{CpuIteratorExt, CpuStreamExt, Handle};

/// The outputs of so many items of less than a microsecond may come together.
const AT_ONCE: usize = 16;

type Stage = Box<dyn Fn(usize) -> usize + Send + Sync>;

/// A stage of which the item `slow` stays until the gate opens. The others take so long.
fn stage(slow: usize, micros: u64) -> (Gate, Stage) {
    let (gate, stay) = gate();
    let stage = move |n| {
        if n == slow {
            stay();
        } else if micros > 0 {
            spin(Duration::from_micros(micros));
        }
        n
    };
    (gate, Box::new(stage))
}

/// More than a microsecond.
const QUICK: u64 = 2;

fn numbers(
    cpu: &Handle,
    inputs: usize,
    stage: Stage,
    (items, ordered, source_on_cpu): (usize, bool, bool),
) -> Buffered<usize> {
    let mut source = CpuStreamExt::on_cpu(stream::iter(0..inputs), cpu);
    if source_on_cpu {
        source = source.source_on_cpu();
    }
    buffered(source.map(stage), items, ordered)
}

async fn take(numbers: &mut Buffered<usize>, outputs: impl IntoIterator<Item = usize>) {
    for n in outputs {
        assert_eq!(numbers.next().await.unwrap().unwrap(), n);
    }
}

/// At any place: the second of all, and after a run of quick ones. Of tiny ones the last before it
/// may be in its group. If the cost of the items is not known, there are none.
#[test]
fn an_output_does_not_wait_for_a_slow_item_behind_it() {
    const CASES: [(usize, usize, u64, usize); 7] = [
        (8, 1, QUICK, 0),
        (8, 2, QUICK, 0),
        (1_000, 100, QUICK, 0),
        (1_000, 20_000, QUICK, 0),
        (65_536, 1, 0, 0),
        (65_536, 1_000, 0, AT_ONCE - 1),
        (65_536, 100_000, 0, AT_ONCE - 1),
    ];
    let kinds = [(true, false), (false, false), (true, true), (false, true)];
    for threads in [1, 2] {
        for (items, quick, micros, may_wait) in CASES {
            for (ordered, source_on_cpu) in kinds {
                let lanes = lanes(threads);
                let (let_go, stage) = stage(quick, micros);
                let settings = (items, ordered, source_on_cpu);
                let mut numbers = numbers(lanes.cpu.handle(), quick + 1, stage, settings);
                lanes.io.block_on(async {
                    if ordered {
                        take(&mut numbers, 0..quick - may_wait).await;
                    } else {
                        for _ in 0..quick - may_wait {
                            assert_ne!(numbers.next().await.unwrap().unwrap(), quick);
                        }
                    }
                    drop(let_go);
                    let rest: Vec<_> = numbers.map(Result::unwrap).collect().await;
                    assert_eq!(rest.len(), may_wait + 1);
                    assert!(!ordered || rest.into_iter().eq(quick - may_wait..=quick));
                });
            }
        }
    }
}

/// The slow item has the quick ones before it in its own chunk, since what came before was
/// quick. Each item has two outputs, or none.
#[test]
fn an_output_does_not_wait_for_a_slow_item_in_its_chunk() {
    const ROUNDS: usize = 20;
    const OF_A_ROUND: usize = 200;
    const BEFORE: usize = 100;
    const SLOW: usize = ROUNDS * OF_A_ROUND + BEFORE;
    let io = current_thread();
    let cpu = cpu_lane(1, io.handle());
    let (let_go, stage) = stage(SLOW, QUICK);
    let (sender, source) = channel();
    let stages = source.on_cpu(cpu.handle()).map(stage);
    let stages = stages.flat_map(|n| if n % 2 == 0 { vec![n, n + 1] } else { vec![] });
    let stages = stages.max_bytes(1 << 20, |_| 1, |_| 3);
    let mut numbers = stages.buffered(1_024);
    io.block_on(async {
        for round in 0..ROUNDS {
            // One poll of the pump reads all of them, so they come in chunks.
            let all = (round * OF_A_ROUND)..((round + 1) * OF_A_ROUND);
            all.clone().for_each(|n| sender.send(n).unwrap());
            take(&mut numbers, all).await;
        }
        let last = SLOW - BEFORE..SLOW + BEFORE;
        last.clone().for_each(|n| sender.send(n).unwrap());
        take(&mut numbers, SLOW - BEFORE..SLOW).await;
        drop(let_go);
        take(&mut numbers, SLOW..SLOW + BEFORE).await;
    });
    drop(sender);
    assert!(io.block_on(numbers.next()).is_none());
    assert!(!format!("{numbers:?}").contains("-"), "{numbers:?}");
}

/// A waker that calls this.
struct Calls<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Calls<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// The ticker called it, which counts the slices of all lanes. (If the outputs come before the test
/// waits for them, it tries again.)
#[test]
fn a_reader_s_waker_that_blocks_stops_no_slice() {
    const SLOW: usize = 8;
    let [own, other] = [(); 2].map(|()| lanes(1));
    loop {
        let (at_slow, stage) = stage(SLOW, 0);
        let settings = (2 * SLOW, true, true);
        let mut numbers = numbers(own.cpu.handle(), SLOW + 1, stage, settings);
        let mut next = |waker: &Waker| numbers.poll_next_unpin(&mut Context::from_waker(waker));
        let mut came = usize::from(next(Waker::noop()).is_ready());
        at_slow.is_reached();
        let (at_waker, stay) = gate();
        let waker = Waker::from(Arc::new(Calls(stay)));
        while next(&waker).is_ready() {
            came += 1;
        }
        if came < SLOW {
            at_waker.is_reached();
            let slice = other.cpu.spawn(async { while !twolane::is_yield_due() {} });
            slice.wait().unwrap();
        }
        drop((at_waker, at_slow));
        own.io.block_on(take(&mut numbers, came..SLOW + 1));
        if came < SLOW {
            break;
        }
    }
}

/// They would be in its group if their cost alone counted. (Of some places in a row one is not
/// the first of a group.)
#[test]
fn where_an_item_was_slow_no_output_waits_for_the_next_slow_one() {
    const FIRST: usize = 5_000;
    for second in [6_000, 6_001] {
        let lanes = lanes(1);
        let (let_go, stage) = stage(second, 0);
        let stage = move |n| {
            if n == FIRST {
                spin(Duration::from_millis(2));
                while !twolane::is_yield_due() {}
            }
            stage(n)
        };
        let settings = (65_536, true, true);
        let mut numbers = numbers(lanes.cpu.handle(), second + 1, Box::new(stage), settings);
        lanes.io.block_on(async {
            take(&mut numbers, 0..second).await;
            drop(let_go);
            take(&mut numbers, [second]).await;
            assert!(numbers.next().await.is_none());
        });
    }
}

/// What follows a slow item in its group of tiny ones is shared out: each of the two workers
/// enters an item that waits for the other. The rest went back as one chunk, so one worker at a time
/// had all of it.
#[test]
fn the_items_behind_a_slow_one_are_shared_out() {
    const TINY: usize = 10_000;
    let io = current_thread();
    let cpu = cpu_lane(2, io.handle());
    let both = Barrier::new(2);
    let (sender, source) = channel();
    let source = source.on_cpu(cpu.handle()).map(move |n| {
        if n == TINY {
            // To the end of its slice, which the ticker tells. (For so many milliseconds of
            // a busy machine the ticker may have no core.)
            while !twolane::is_yield_due() {}
        } else if n > TINY {
            both.wait();
        }
        n
    });
    let mut numbers = source.buffered(1_024);
    io.block_on(async {
        // One poll of the pump reads a round, so they come in chunks.
        for first in (0..TINY).step_by(500) {
            (first..first + 500).for_each(|n| sender.send(n).unwrap());
            take(&mut numbers, first..first + 500).await;
        }
        (TINY..TINY + 3).for_each(|n| sender.send(n).unwrap());
        take(&mut numbers, TINY..TINY + 3).await;
    });
}

/// An input may make several outputs and then panic.
#[test]
fn outputs_before_a_panic_come() {
    for before in [0, 1, 100] {
        let lanes = lanes(1);
        let source = (0..1_000).on_cpu(lanes.cpu.handle());
        let stages = source.flat_map(move |n| {
            let outputs = if n < 10 { 1 } else { before + 1 };
            (0..outputs).inspect(move |output| assert!(n < 10 || *output < before, "planned"))
        });
        let mut outputs = stages.buffered(16);
        lanes.io.block_on(async {
            take(&mut outputs, [0; 10]).await;
            take(&mut outputs, 0..before).await;
            let panic = outputs.next().await.unwrap();
            assert!(panic.unwrap_err().is_panic());
            assert!(outputs.next().await.is_none());
        });
    }
}

/// What was handed over while the item ran does not come again, and the rest comes: of an
/// item that panics after all, of one behind which the stream is dropped.
#[test]
fn a_slow_item_may_fail() {
    const SLOW: usize = 100;
    for is_dropped in [false, true] {
        let lanes = lanes(1);
        let (let_go, stage) = stage(SLOW, QUICK);
        let stage = Box::new(move |n| {
            let n = stage(n);
            assert_ne!(n, SLOW, "planned");
            n
        });
        let mut numbers = numbers(lanes.cpu.handle(), 1_000, stage, (1_000, true, true));
        lanes.io.block_on(take(&mut numbers, 0..SLOW));
        if is_dropped {
            drop((numbers, let_go));
        } else {
            drop(let_go);
            let panic = lanes.io.block_on(numbers.next()).unwrap();
            assert!(panic.unwrap_err().is_panic());
            assert!(block_on(numbers.next()).is_none());
        }
        assert_eq!(lanes.cpu.spawn_cpu(|| 1).wait().unwrap(), 1);
    }
}
