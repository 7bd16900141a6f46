//! How does a stream end if its I/O runtime goes, or is not driven? And what is left of a
//! stream that was dropped while it was queued?

use std::sync::mpsc;
use std::thread;

use crate::context::{INPUTS, SOURCES, Source, numbers};
use crate::support::turns::current_thread;
use crate::support::wait::wait_until;
use crate::support::{Dropped, Stuck, cpu_lane, lanes};
use futures::StreamExt;
use futures::executor::block_on;
use twolane::{JoinError, JoinErrorKind};

/// Either all came, or the last item says that the I/O runtime is gone.
#[track_caller]
fn is_complete(items: Vec<Result<(), JoinError>>) -> bool {
    let outputs = items.iter().take_while(|item| item.is_ok()).count();
    let errors = &items[outputs..];
    match errors {
        [] => assert_eq!(outputs, INPUTS as usize),
        [error] => assert_eq!(
            error.as_ref().unwrap_err().kind(),
            JoinErrorKind::IoRuntimeGone
        ),
        _ => panic!("something comes after an error"),
    }
    errors.is_empty()
}

/// Until it is driven, only what needs the I/O lane waits.
#[test]
fn a_current_thread_runtime_that_is_not_driven() {
    for source in SOURCES {
        let io = current_thread();
        let cpu = cpu_lane(1, io.handle());
        let handle = cpu.handle().clone();
        let stream = || numbers(&handle, source, || (), || ());
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
}

/// A worker or a pump that waits for its thread finds nothing to do, and what it would have
/// read is dropped.
#[test]
fn a_drop_cancels_what_is_queued() {
    for source in SOURCES {
        let (cpu, _lanes) = lanes(1).and_handle();
        let stuck = Stuck::start(&cpu);
        let (dropped, drops) = mpsc::channel();
        let sentinel = Dropped(dropped);
        let pull = move || _ = &sentinel;
        let stream = numbers::<()>(&cpu, source, pull, || panic!("it is not wanted"));
        wait_until(|| cpu.metrics().queued > 0);
        drop(stream);
        stuck.end();
        drops.recv().unwrap();
        wait_until(|| cpu.metrics().gauges().all(|(_, jobs)| jobs == 0));
        assert_eq!(cpu.metrics().panicked, 0);
    }
}
