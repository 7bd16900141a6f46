//! Streams and bridges: panics that no reader sees, and shutdowns.

use std::sync::mpsc;

use crate::gate::gate;
use crate::support::busy::wait_for_idle;
use crate::support::{Dropped, Lanes, Stuck};
use crate::tap::listen;
use futures::StreamExt;
use futures::executor::block_on;
use twolane::{CpuIteratorExt, CpuStreamExt, Handle, HandleExt};

/// A panic in a stream whose consumer drops it before it comes to the panic. The reader of
/// one that was read does with it what it wants.
#[test]
fn a_panic_in_a_stream_that_is_dropped_before_it_is_read() {
    listen(|log, Lanes { cpu, io: _io }| {
        let says = |text| log.says(&["ERROR ", ": a job without an awaiter panicked", text]);
        let span = tracing::info_span!("request");
        let _request = span.enter();
        for taken in 0..3 {
            // It runs until it has panicked; the source is dropped then.
            let (dropped, source_dropped) = mpsc::channel();
            let sentinel = Dropped(dropped);
            let source = (0..4).inspect(move |_| _ = &sentinel);
            let stage = |n| assert_ne!(n, 2, "of a stage");
            let mut stream = source.on_cpu(cpu.handle()).map(stage).buffered(WINDOW);
            source_dropped.recv().unwrap();
            wait_for_idle(cpu.handle());
            for _ in 0..taken {
                block_on(stream.next()).unwrap().unwrap();
            }
            drop(stream);
            says("of a stage");
        }

        let source = (0..4).inspect(|&n| assert_ne!(n, 2, "of the source"));
        let mut stream = source.on_cpu(cpu.handle()).map(|n| n).buffered(WINDOW);
        block_on(stream.next()).unwrap().unwrap();
        block_on(stream.next()).unwrap().unwrap();
        wait_for_idle(cpu.handle());
        drop(stream);
        says("of the source");

        // The stage runs while the stream is dropped.
        let (gate, stay) = gate();
        let source = [1].into_iter().on_cpu(cpu.handle());
        let stage = move |_| -> () {
            stay();
            panic!("too late");
        };
        let stream = source.map(stage).buffered(WINDOW);
        gate.is_reached();
        drop(stream);
        drop(gate);
        says("too late");

        let mut read = (0..4)
            .on_cpu(cpu.handle())
            .map(|n| assert_ne!(n, 0))
            .buffered(WINDOW);
        assert!(block_on(read.next()).unwrap().unwrap_err().is_panic());
        drop(read);
        assert!(cpu.shutdown().wait().is_empty());
    });
}

/// Each of these was logged as a detached job that had been lost ("keep the tasks of jobs that
/// matter"), though the user had detached nothing: the lane's own jobs, which drop the
/// states of a stream or move the items of a bridge. A reader has the error from its
/// bridge, and nothing is missing where a value is dropped.
#[test]
fn a_shutdown_with_streams_says_nothing_of_detached_jobs() {
    for (name, case) in STREAM_ENDS {
        println!("{name}");
        listen(|log, lanes| {
            case(&lanes);
            assert!(lanes.cpu.shutdown().wait().is_empty());
            log.is_silent();
        });
    }
    // A job that the user has detached is reported, beside any of them.
    listen(|log, Lanes { cpu, io: _io }| {
        let stuck = Stuck::start(cpu.handle());
        let numbers = stream_with_states(cpu.handle());
        cpu.spawn_cpu(|| ()).detach();
        let over = cpu.shutdown();
        drop(numbers);
        stuck.end();
        assert!(over.wait().is_empty());
        log.says(&["WARN twolane: detached jobs were dropped", "jobs=1 "]);
    });
}

type StreamEnd = (&'static str, fn(&Lanes));

const STREAM_ENDS: [StreamEnd; 9] = [
    ("states, dropped after the shutdown", |lanes| {
        let numbers = read_to_its_end(lanes);
        lanes.cpu.shutdown().wait();
        drop(numbers);
    }),
    ("states, dropped while the shutdown is held", |lanes| {
        let numbers = read_to_its_end(lanes);
        let stuck = Stuck::start(lanes.cpu.handle());
        let over = lanes.cpu.shutdown();
        drop(numbers);
        stuck.end();
        over.wait();
    }),
    ("inputs, dropped while the shutdown is held", |lanes| {
        let (pulled, pulls) = mpsc::channel();
        let stuck = Stuck::start(lanes.cpu.handle());
        let source = futures::stream::iter(0..4).map(move |n| {
            pulled.send(()).unwrap();
            n.to_string()
        });
        let lengths = CpuStreamExt::on_cpu(source, lanes.cpu.handle()).map(|n: String| n.len());
        let lengths: twolane::stream::Buffered<usize> = lengths.buffered(WINDOW);
        pulls.iter().take(4).for_each(drop);
        let over = lanes.cpu.shutdown();
        drop(lengths);
        stuck.end();
        over.wait();
    }),
    ("a bridge from the CPU lane, unread, cut off", |lanes| {
        let endless = futures::stream::pending::<()>();
        let mut items = lanes.cpu.handle().stream_from_cpu(endless, 1, |()| 1);
        lanes.cpu.shutdown().wait();
        assert!(block_on(items.next()).unwrap().is_err());
    }),
    ("a bridge from the CPU lane, read, cut off", |lanes| {
        let source = futures::stream::iter([1]).chain(futures::stream::pending());
        let mut items = lanes.cpu.handle().stream_from_cpu(source, 1, |_| 1);
        block_on(items.next()).unwrap().unwrap();
        lanes.cpu.shutdown().wait();
        assert!(block_on(items.next()).unwrap().is_err());
    }),
    ("its reader, dropped before the shutdown", |lanes| {
        let endless = futures::stream::repeat(1);
        let mut items = lanes.cpu.handle().stream_from_cpu(endless, 1, |_| 1);
        block_on(items.next()).unwrap().unwrap();
        let stuck = Stuck::start(lanes.cpu.handle());
        drop(items);
        let over = lanes.cpu.shutdown();
        stuck.end();
        over.wait();
    }),
    ("a bridge that comes after the shutdown", |lanes| {
        lanes.cpu.shutdown().wait();
        let cpu = lanes.cpu.handle().clone();
        let mut back = cpu.stream_from_cpu(futures::stream::iter([1]), 1, |_| 1);
        assert!(block_on(back.next()).unwrap().is_err());
        let mut there = cpu.stream_from_io(futures::stream::iter([1]), 1, |_| 1);
        assert!(block_on(there.next()).unwrap().is_err());
    }),
    ("a bridge from the I/O lane", |lanes| {
        let source = futures::stream::iter([1]).chain(futures::stream::pending());
        let mut items = lanes.cpu.handle().stream_from_io(source, 1, |_| 1);
        block_on(items.next()).unwrap().unwrap();
        lanes.cpu.shutdown().wait();
        drop(items);
    }),
    ("a value of the I/O lane", |lanes| {
        let (dropped, drops) = mpsc::channel();
        let value = lanes.cpu.handle().io_owned(Dropped(dropped));
        lanes.cpu.shutdown().wait();
        drop(value);
        drops.recv().unwrap();
    }),
];

const WINDOW: usize = 8;

/// Its workers have states that a destructor frees.
fn stream_with_states(cpu: &Handle) -> twolane::stream::Buffered<usize> {
    let numbers = CpuStreamExt::on_cpu(futures::stream::iter(0..4), cpu);
    let numbers = numbers.map_init(String::new, |_: &mut String, n: usize| n);
    numbers.buffered(WINDOW)
}

fn read_to_its_end(lanes: &Lanes) -> twolane::stream::Buffered<usize> {
    let mut numbers = stream_with_states(lanes.cpu.handle());
    for n in 0..4 {
        assert_eq!(block_on(numbers.next()).unwrap().unwrap(), n);
    }
    assert!(block_on(numbers.next()).is_none());
    // Its worker may still be on its way out, with the state in its hands.
    wait_for_idle(lanes.cpu.handle());
    numbers
}
