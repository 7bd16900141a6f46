//! Do the outputs of quick items come while a slow one behind them runs?
//!
//! A worker collects outputs and hands them over together. An item that took long joined
//! the batch of the quick ones before it, and their outputs came after it: of items of 0 and
//! 400 ms the first output came after 400 ms, on two threads, ordered or not.

use std::sync::{Barrier, Mutex, mpsc};
use std::time::Duration;

use crate::support::turns::current_thread;
use crate::support::{BOTH, cpu_lane, lanes, time_limit};
use crate::{channel, spin};
use futures::executor::block_on;
use futures::{StreamExt, stream};
use tokio::time::timeout;
use twolane::stream::Buffered;
use twolane::{CpuIteratorExt, CpuStreamExt};

/// Far more than any output takes that does not wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// The outputs of so many items of less than a microsecond may come together.
const AT_ONCE: usize = 16;

/// A stage of which the item `slow` stays until the sender is dropped. The others take more
/// than a microsecond.
fn stage(slow: usize) -> (mpsc::Sender<()>, impl Fn(usize) -> usize + Send + Sync) {
    let (let_go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let stage = move |n| {
        if n == slow {
            let _ = wait.lock().unwrap().recv();
        } else {
            spin(Duration::from_micros(2));
        }
        n
    };
    (let_go, stage)
}

/// Takes the outputs of so many quick items.
async fn take(numbers: &mut Buffered<usize>, quick: impl IntoIterator<Item = usize>) {
    for n in quick {
        let next = timeout(PATIENCE, numbers.next()).await;
        let next = next.unwrap_or_else(|_| panic!("{n} waits for an item behind it"));
        assert_eq!(next.unwrap().unwrap(), n);
    }
}

/// At any place: the second of all, and after a run of quick ones.
#[test]
fn an_output_does_not_wait_for_a_slow_item_behind_it() {
    let _limit = time_limit();
    for backend in BOTH {
        for threads in [1, 2] {
            for (items, quick) in [(8, 1), (8, 2), (1_000, 100), (1_000, 20_000)] {
                for (ordered, is_iterator) in
                    [(true, false), (false, false), (true, true), (false, true)]
                {
                    let lanes = lanes(backend, threads);
                    let (let_go, stage) = stage(quick);
                    let cpu = lanes.cpu.handle();
                    let mut numbers = match (is_iterator, ordered) {
                        (true, true) => (0..=quick).on_cpu(&cpu).map(stage).buffered(items),
                        (true, false) => {
                            let stages = (0..=quick).on_cpu(&cpu).map(stage);
                            stages.buffer_unordered(items)
                        }
                        (false, ordered) => {
                            let source = stream::iter(0..=quick);
                            let stages = CpuStreamExt::on_cpu(source, &cpu).map(stage);
                            match ordered {
                                true => stages.buffered(items),
                                false => stages.buffer_unordered(items),
                            }
                        }
                    };
                    lanes.io.block_on(async {
                        if ordered {
                            take(&mut numbers, 0..quick).await;
                        } else {
                            for _ in 0..quick {
                                let next = timeout(PATIENCE, numbers.next()).await;
                                let next = next.expect("one waits for the slow item");
                                assert_ne!(next.unwrap().unwrap(), quick);
                            }
                        }
                    });
                    drop(let_go);
                    let last = block_on(numbers.next()).unwrap();
                    assert_eq!(last.unwrap(), quick);
                    assert!(block_on(numbers.next()).is_none());
                }
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
    const QUICK: usize = 100;
    const SLOW: usize = ROUNDS * OF_A_ROUND + QUICK;
    let _limit = time_limit();
    for backend in BOTH {
        let io = current_thread();
        let cpu = cpu_lane(backend, 1, io.handle());
        let (let_go, stage) = stage(SLOW);
        let (sender, source) = channel();
        let stages = source.on_cpu(&cpu.handle()).map(stage);
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
            let last = SLOW - QUICK..SLOW + QUICK;
            last.clone().for_each(|n| sender.send(n).unwrap());
            take(&mut numbers, SLOW - QUICK..SLOW).await;
            drop(let_go);
            take(&mut numbers, SLOW..SLOW + QUICK).await;
        });
        drop(sender);
        assert!(io.block_on(numbers.next()).is_none());
        assert!(!format!("{numbers:?}").contains("-"), "{numbers:?}");
    }
}

/// The last ones before it may be in its group. If the cost of the items is not known, there
/// are none.
#[test]
fn outputs_of_tiny_items_do_not_wait_either() {
    let _limit = time_limit();
    for backend in BOTH {
        for (quick, may_wait) in [(1, 0), (1_000, AT_ONCE - 1), (100_000, AT_ONCE - 1)] {
            let lanes = lanes(backend, 2);
            let (let_go, wait) = mpsc::channel::<()>();
            let wait = Mutex::new(wait);
            let stages = (0..=quick).on_cpu(&lanes.cpu.handle()).map(move |n| {
                if n == quick {
                    let _ = wait.lock().unwrap().recv();
                }
                n
            });
            let mut numbers = stages.buffered(65_536);
            lanes.io.block_on(async {
                take(&mut numbers, 0..quick - may_wait).await;
                drop(let_go);
                take(&mut numbers, quick - may_wait..=quick).await;
                assert!(numbers.next().await.is_none());
            });
        }
    }
}

/// They would be in its group if their cost alone counted. (Of some places in a row one is not
/// the first of a group.)
#[test]
fn where_an_item_was_slow_no_output_waits_for_the_next_slow_one() {
    const FIRST: usize = 5_000;
    let _limit = time_limit();
    for (backend, second) in BOTH.into_iter().flat_map(|it| [(it, 6_000), (it, 6_001)]) {
        let lanes = lanes(backend, 1);
        let (let_go, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let stages = (0..=second).on_cpu(&lanes.cpu.handle()).map(move |n| {
            if n == FIRST {
                spin(Duration::from_millis(2));
                while !twolane::is_yield_due() {}
            } else if n == second {
                let _ = wait.lock().unwrap().recv();
            }
            n
        });
        let mut numbers = stages.buffered(65_536);
        lanes.io.block_on(async {
            take(&mut numbers, 0..second).await;
            drop(let_go);
            take(&mut numbers, [second]).await;
            assert!(numbers.next().await.is_none());
        });
    }
}

/// What follows a slow item in its group of tiny ones is shared out: each of the two workers
/// enters an item that waits for the other.
#[test]
fn the_items_behind_a_slow_one_are_shared_out() {
    const QUICK: usize = 10_000;
    let _limit = time_limit();
    for backend in BOTH {
        let io = current_thread();
        let cpu = cpu_lane(backend, 2, io.handle());
        let both = Barrier::new(2);
        let (sender, source) = channel();
        let stages = source.on_cpu(&cpu.handle()).map(move |n| {
            if n == QUICK {
                // Longer than a slice.
                spin(Duration::from_millis(20));
            } else if n > QUICK {
                both.wait();
            }
            n
        });
        let mut numbers = stages.buffered(1_024);
        io.block_on(async {
            // One poll of the pump reads a round, so they come in chunks.
            for first in (0..QUICK).step_by(500) {
                (first..first + 500).for_each(|n| sender.send(n).unwrap());
                take(&mut numbers, first..first + 500).await;
            }
            (QUICK..QUICK + 3).for_each(|n| sender.send(n).unwrap());
            take(&mut numbers, QUICK..QUICK + 3).await;
        });
    }
}

/// An input may make several outputs and then panic.
#[test]
fn outputs_before_a_panic_come() {
    let _limit = time_limit();
    for backend in BOTH {
        for before in [0, 1, 3, 100] {
            let lanes = lanes(backend, 1);
            let source = (0..1_000).on_cpu(&lanes.cpu.handle());
            let stages = source.flat_map(move |n| {
                let outputs = if n < 10 { 1 } else { before + 1 };
                (0..outputs).inspect(move |output| assert!(n < 10 || *output < before, "planned"))
            });
            let mut outputs = stages.buffered(16);
            lanes.io.block_on(async {
                for _ in 0..10 {
                    take(&mut outputs, [0]).await;
                }
                take(&mut outputs, 0..before).await;
                let panic = outputs.next().await.unwrap();
                assert!(panic.unwrap_err().is_panic());
                assert!(outputs.next().await.is_none());
            });
        }
    }
}

/// What was handed over while the item ran does not come again, and the rest comes: of an
/// item that panics after all, of one behind which the stream is dropped.
#[test]
fn a_slow_item_may_fail() {
    const QUICK: usize = 100;
    let _limit = time_limit();
    for backend in BOTH {
        for is_dropped in [false, true] {
            let lanes = lanes(backend, 1);
            let (let_go, stage) = stage(QUICK);
            let stage = move |n| {
                let n = stage(n);
                assert_ne!(n, QUICK, "planned");
                n
            };
            let source = (0..1_000).on_cpu(&lanes.cpu.handle()).map(stage);
            let mut numbers = source.buffered(1_000);
            lanes.io.block_on(take(&mut numbers, 0..QUICK));
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
}
