//! Does each worker get its share, and does a worker leave other jobs theirs?

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::turns::current_thread;
use crate::support::{Dropped, cpu_lane, lanes, time_limit};
use crate::{channel, spin};
use futures::{StreamExt, stream};
use twolane::{CpuStreamExt, spawn_cpu};

/// A chunk of one input never ends a slice, so a batch of such chunks did not, either: a job that
/// waits ran after all of them. By default a batch takes 0.5 ms times the number of workers.
#[test]
fn a_worker_yields_after_its_slice() {
    const INPUTS: usize = 20_000;
    const JOBS: usize = 10;
    let _limit = time_limit();
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

/// The rest went back as one chunk, so one worker at a time had all of it, and no two slow items
/// ever ran at once.
#[test]
fn what_a_worker_puts_back_is_for_all_workers() {
    let _limit = time_limit();
    let io = current_thread();
    let cpu = cpu_lane(2, io.handle());
    let (sender, source) = channel();
    let running = AtomicUsize::new(0);
    let met = Arc::new(AtomicBool::new(false));
    let have_met = met.clone();
    // A slow one waits for another one, for more than a slice.
    let stage = move |is_slow: bool| {
        let began = Instant::now();
        let may_wait = || began.elapsed() < Duration::from_millis(30);
        if is_slow && running.fetch_add(1, SeqCst) > 0 {
            met.store(true, SeqCst);
        }
        while is_slow && !met.load(SeqCst) && may_wait() {
            thread::yield_now();
        }
        running.fetch_sub(usize::from(is_slow), SeqCst);
    };
    let mut stream = source.on_cpu(cpu.handle()).map(stage).buffered(256);
    io.block_on(async {
        // A busy machine may keep the second worker from its core for a while.
        while !have_met.load(SeqCst) {
            let rounds = std::iter::repeat_n((false, 200), 20).chain([(true, 30)]);
            for (is_slow, items) in rounds {
                // One poll of the pump reads all of them, and cuts them into chunks by what
                // the ones before have cost.
                (0..items).for_each(|_| sender.send(is_slow).unwrap());
                for _ in 0..items {
                    stream.next().await.unwrap().unwrap();
                }
            }
        }
    });
}
