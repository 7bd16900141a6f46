//! Where does a dropped stream drop what it holds, and what if a destructor panics? (That nothing is
//! left of one, also if its lane is gone: `storm`.)

use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};

use crate::channel;
use crate::gate::gate;
use crate::support::busy::wait_for_idle;
use crate::support::turns::current_thread;
use crate::support::wait::wait_until;
use crate::support::{Dropped, cpu_lane, lanes, thread_name};
use futures::executor::block_on;
use futures::{StreamExt, stream};
use twolane::{CpuIteratorExt, CpuStreamExt};

/// As what is queued in a `Task`. The destructors of a whole window ran where the stream was
/// dropped, or where `poll_next` met an error: on an I/O worker.
#[test]
fn inputs_are_dropped_on_the_lane() {
    const INPUTS: usize = 8;
    for source_on_cpu in [false, true] {
        for panics in [false, true] {
            let (cpu, lanes) = lanes(2).and_handle();
            let (dropped, drops) = mpsc::channel();
            let (pulled, pulls) = mpsc::channel();
            let inputs = (0..INPUTS).map(move |n| {
                pulled.send(()).unwrap();
                (n, Dropped(dropped.clone()))
            });
            let (let_first_go, first) = gate();
            let (let_go, wait) = gate();
            let stage = move |(n, _input): (usize, Dropped)| {
                if n == 0 {
                    first();
                    assert!(!panics, "of the stage");
                } else {
                    wait();
                }
            };
            let mut source = CpuStreamExt::on_cpu(stream::iter(inputs), &cpu);
            if source_on_cpu {
                source = source.source_on_cpu();
            }
            let mut outputs = source.map(stage).buffered(64);
            // A pump that is a job may have yielded, and both threads run a stage.
            let least = if source_on_cpu { 2 } else { INPUTS };
            let mut inputs = pulls.iter().take(least).count();
            let let_first_go = (!panics).then_some(let_first_go);
            if panics {
                let first = lanes.io.block_on(outputs.next()).unwrap();
                assert!(first.unwrap_err().is_panic());
            }
            drop(outputs);
            drop((let_first_go, let_go));
            let drops: Vec<_> = drops.iter().collect();
            inputs += pulls.iter().count();
            assert_eq!(drops.len(), inputs);
            let are_on_lane = drops.iter().all(|thread| thread.starts_with("cpu-"));
            assert!(are_on_lane, "{drops:?}");
        }
    }
}

/// The states of idle workers, and what the stages have captured. A destructor may be long,
/// and the stream's own thread is one of the I/O lane.
#[test]
fn states_and_captures_are_dropped_on_the_lane() {
    for takes_all in [false, true] {
        let lanes = lanes(1);
        let (dropped, drops) = mpsc::channel();
        let capture = Dropped(dropped.clone());
        let init = move || Dropped(dropped.clone());
        let stage = move |_: &mut Dropped, n| {
            let _ = &capture;
            n
        };
        let source = (0..8).on_cpu(lanes.cpu.handle());
        let mut numbers = source.map_init(init, stage).buffered(4);
        let taken = if takes_all { 9 } else { 1 };
        lanes.io.block_on(async {
            for _ in 0..taken {
                let _ = numbers.next().await;
            }
        });
        wait_for_idle(lanes.cpu.handle());
        drop(numbers);
        // The source has ended in one case, and is dropped in the other one.
        assert_eq!(Vec::from_iter(drops), ["cpu-0", "cpu-0"]);
    }
}

/// The worker keeps what the consumer has not got. What the consumer has got is its own.
#[test]
fn outputs_are_dropped_by_those_that_have_them() {
    let lanes = lanes(1);
    let (dropped, drops) = mpsc::channel();
    let outputs = move |_| Dropped(dropped.clone());

    let source = (0..8).on_cpu(lanes.cpu.handle()).map(outputs.clone());
    let numbers = source.buffered(64);
    wait_until(|| lanes.cpu.handle().metrics().completed > 0);
    wait_for_idle(lanes.cpu.handle());
    drop(numbers);
    assert_eq!(drops.try_iter().collect::<Vec<_>>(), vec![thread_name(); 8]);

    let (gate, stay) = gate();
    let outputs = move |n| {
        if n == 1 {
            stay();
        }
        outputs(n)
    };
    let numbers = (0..8).on_cpu(lanes.cpu.handle()).map(outputs).buffered(64);
    gate.is_reached();
    drop(numbers);
    // The first one may have been sent before the second one ran.
    drops
        .try_iter()
        .for_each(|on| assert_eq!(on, thread_name()));
    drop(gate);
    // The senders go with the stages, and they go last.
    assert!(drops.iter().all(|on| on == "cpu-0"));
}

/// Its destructor always panics. Two of them in one drop would abort the process: "panic in
/// a destructor during cleanup".
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the destructor of a value");
    }
}

/// 64 `Task`s with such outputs are dropped without harm. The worker has sent them when the stream is
/// dropped, or still has them.
#[test]
fn the_destructors_of_outputs_panic() {
    for (are_sent, taken) in [(true, 0), (true, 1), (false, 0)] {
        let lanes = lanes(1);
        let (gate, stay) = gate();
        let outputs = (0..16).on_cpu(lanes.cpu.handle()).map(move |n| {
            if !are_sent && n == 15 {
                stay();
            }
            Bomb
        });
        let mut outputs = outputs.buffered(100);
        if are_sent {
            wait_until(|| lanes.cpu.handle().metrics().completed > 0);
            wait_for_idle(lanes.cpu.handle());
        } else {
            gate.is_reached();
        }
        for _ in 0..taken {
            mem::forget(block_on(outputs.next()));
        }
        drop(outputs);
        drop(gate);
        assert_eq!(lanes.cpu.spawn_cpu(|| 1).wait().unwrap(), 1);
    }
}

/// A stage panics, and the inputs behind it in its chunk, and those in the queue, panic when
/// they are dropped.
#[test]
fn the_destructors_of_inputs_panic() {
    let io = current_thread();
    let cpu = cpu_lane(1, io.handle());
    let (sender, source) = channel();
    // Those that are not read when the stage panics are no bombs yet: two in the drop of
    // one channel abort the process.
    let source = source.map(|is_bomb: bool| is_bomb.then(|| Bomb));
    let stage = |input: Option<Bomb>| {
        if input.is_some() {
            // Its own input would panic while the stage does.
            mem::forget(input);
            panic!("of the stage");
        }
    };
    let mut stream = source.on_cpu(cpu.handle()).map(stage).buffered(256);
    io.block_on(async {
        for _ in 0..20 {
            // One poll of the pump reads all of them, so they come in chunks.
            (0..200).for_each(|_| sender.send(false).unwrap());
            for _ in 0..200 {
                stream.next().await.unwrap().unwrap();
            }
        }
        (0..8).for_each(|_| sender.send(false).unwrap());
        (0..100).for_each(|_| sender.send(true).unwrap());
        for _ in 0..8 {
            stream.next().await.unwrap().unwrap();
        }
        let panic = stream.next().await.unwrap().unwrap_err();
        assert!(panic.is_panic());
        assert!(stream.next().await.is_none());
    });
    drop(stream);
    assert_eq!(cpu.spawn_cpu(|| 1).wait().unwrap(), 1);
}

/// And the input that the pump holds, since it does not fit into the window.
#[test]
fn the_destructors_of_queued_inputs_and_of_states_panic() {
    let lanes = lanes(2);
    let (let_go, wait) = gate();
    let pulled = Arc::new(AtomicUsize::new(0));
    let count = pulled.clone();
    let source = stream::repeat_with(move || {
        count.fetch_add(1, SeqCst);
        Bomb
    });
    let stage = move |_: &mut Bomb, input: Bomb| {
        wait();
        mem::forget(input);
    };
    let stream = CpuStreamExt::on_cpu(source, lanes.cpu.handle())
        .map_init(|| Bomb, stage)
        .max_bytes(10, |_| 3, |()| 0)
        .buffered(64);
    wait_until(|| pulled.load(SeqCst) >= 4);
    drop(stream);
    drop(let_go);
    assert_eq!(lanes.cpu.spawn_cpu(|| 1).wait().unwrap(), 1);
}
