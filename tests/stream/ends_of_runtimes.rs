//! How does a stream end if its I/O runtime goes, or is not driven? And what is left of a
//! stream that was dropped while it was queued?

use std::sync::mpsc;
use std::thread;

use crate::support::turns::current_thread;
use crate::support::wait::wait_until;
use crate::support::{Dropped, Stuck, cpu_lane, on_both, with_both};
use futures::executor::block_on;
use futures::{StreamExt, stream};
use twolane::stream::Buffered;
use twolane::{CpuIteratorExt, CpuStreamExt, Handle, JoinError};

const INPUTS: u32 = 9;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    IoOwned,
    OnCpu,
    Iterator,
}

const SOURCES: [Source; 3] = [Source::IoOwned, Source::OnCpu, Source::Iterator];

fn numbers(
    cpu: &Handle,
    source: Source,
    items: usize,
    sentinel: Option<Dropped>,
    stage: impl Fn(u32) -> u32 + Send + Sync + 'static,
) -> Buffered<u32> {
    let inputs = (0..INPUTS).inspect(move |_| _ = &sentinel);
    if source == Source::Iterator {
        return inputs.on_cpu(cpu).map(stage).buffered(items);
    }
    let stages = CpuStreamExt::on_cpu(stream::iter(inputs), cpu).map(stage);
    match source {
        Source::OnCpu => stages.source_on_cpu().buffered(items),
        _ => stages.buffered(items),
    }
}

/// Either all came, or the last item says that the I/O runtime is gone.
#[track_caller]
fn is_complete(items: Vec<Result<u32, JoinError>>) -> bool {
    let outputs: Vec<_> = items.iter().map_while(|item| item.as_ref().ok()).collect();
    assert_eq!(
        outputs,
        Vec::from_iter(&(0..outputs.len() as u32).collect::<Vec<_>>())
    );
    let errors = &items[outputs.len()..];
    match errors {
        [] => assert_eq!(outputs.len(), INPUTS as usize),
        [error] => assert!(error.as_ref().unwrap_err().is_io_runtime_gone()),
        _ => panic!("something comes after an error"),
    }
    errors.is_empty()
}

/// Until it is driven, only what needs the I/O lane waits.
#[test]
fn a_current_thread_runtime_that_is_not_driven() {
    with_both(|backend| {
        for source in SOURCES {
            let io = current_thread();
            let cpu = cpu_lane(backend, 1, io.handle());
            let handle = cpu.handle();
            let stream = || numbers(&handle, source, 4, None, |n| n);
            if source != Source::IoOwned {
                assert!(is_complete(block_on(stream().collect())));
            }
            // Another thread reads it while this one drives the runtime.
            let waits = stream();
            let (read, reads) = tokio::sync::oneshot::channel();
            let reader = thread::spawn(move || {
                let items = block_on(waits.collect());
                read.send(()).unwrap();
                items
            });
            io.block_on(reads).unwrap();
            assert!(is_complete(reader.join().unwrap()));
            // It goes without ever having polled the source.
            let never = stream();
            drop(io);
            let complete = is_complete(block_on(never.collect()));
            assert!(!(complete && source == Source::IoOwned));
        }
    });
}

/// A worker or a pump that waits for its thread finds nothing to do, and what it would have
/// read is dropped.
#[test]
fn a_drop_cancels_what_is_queued() {
    for source in SOURCES {
        on_both(1, |lanes| {
            let cpu = lanes.cpu.handle();
            let (stuck, let_go) = Stuck::start(&cpu).split();
            let (dropped, drops) = mpsc::channel();
            let stage = |n| panic!("{n} is not wanted");
            let stream = numbers(&cpu, source, 4, Some(Dropped(dropped)), stage);
            wait_until(|| cpu.metrics().queued > 0);
            drop(stream);
            let_go.send(()).unwrap();
            stuck.wait().unwrap();
            drops.recv().unwrap();
            wait_until(|| cpu.metrics().gauges().all(|(_, jobs)| jobs == 0));
            assert_eq!(cpu.metrics().panicked, 0);
        });
    }
}
