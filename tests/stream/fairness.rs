//! Does a worker leave other jobs their share? (Workers among each other: `slow_items.rs`.)

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use crate::spin;
use crate::support::{Dropped, lanes};
use futures::{StreamExt, stream};
use twolane::{CpuStreamExt, spawn_cpu};

/// A chunk of one input never ends a slice, so a batch of such chunks did not, either: a job that
/// waits ran after all of them. By default a batch takes 0.5 ms times the number of workers.
#[test]
fn a_worker_yields_after_its_slice() {
    const INPUTS: usize = 20_000;
    const JOBS: usize = 10;
    let lanes = lanes(1);
    let (dropped, source_dropped) = mpsc::channel();
    let sentinel = Dropped(dropped);
    let source = stream::iter(0..INPUTS).inspect(move |_| _ = &sentinel);
    let source_dropped = Mutex::new(source_dropped);
    // A job comes when the one before it has run.
    let (came, ran) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let jobs = ran.clone();
    let stage = move |n| {
        if n == 0 {
            // All are read while no cost is known: each is a chunk of its own.
            source_dropped.lock().unwrap().recv().unwrap();
        }
        let have_run = ran.load(SeqCst);
        if have_run == JOBS {
            return;
        }
        spin(Duration::from_millis(1));
        if came.load(SeqCst) == have_run {
            came.store(have_run + 1, SeqCst);
            let ran = ran.clone();
            spawn_cpu(move || ran.store(have_run + 1, SeqCst)).detach();
        }
        assert!(
            n < INPUTS - 1,
            "{have_run} of {JOBS} jobs ran before the end"
        );
    };
    let stages = source.on_cpu(lanes.cpu.handle()).map(stage);
    let stages = stages.batch_time(Duration::from_secs(3_600));
    let outputs = stages.buffered(100_000).map(Result::unwrap).count();
    assert_eq!(lanes.io.block_on(outputs), INPUTS);
    assert_eq!(jobs.load(SeqCst), JOBS);
}
