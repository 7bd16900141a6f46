//! Shares of tenants that always have jobs queued, and what a job costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures::future::join_all;
use twolane::Key;
use twolane_benches::tail::work::Work;
use twolane_benches::{Sample, cpu_time, io_runtime, lane};

/// The CPU time of each key over its due, as the lane has measured it.
pub fn shares(counted: Duration, us: Work) -> Sample {
    const KEYS: [(u16, fn() -> u64); 4] = [
        (1, || 1_000),
        (1, || 20_000),
        (2, || fastrand::u64(1_000..=10_000)),
        (4, || 5_000),
    ];
    const QUEUED: usize = 32;
    let io = io_runtime(2);
    let cpu = lane(io.handle(), |lane| lane);
    let ends = Arc::new(AtomicBool::new(false));
    io.block_on(async {
        for (key, (weight, length)) in KEYS.into_iter().enumerate() {
            for _ in 0..QUEUED {
                let key = Key::new(key.to_string()).with_weight(weight);
                let (key, ends) = (cpu.handle().with_key(key), ends.clone());
                tokio::spawn(async move {
                    while !ends.load(Relaxed) {
                        let work = us.times(length() as f64);
                        let _ = key.spawn_cpu(move || work.run()).await;
                    }
                });
            }
        }
        tokio::time::sleep(counted * 2).await;
    });
    let used = cpu.handle().call_sites();
    let used = used.keys();
    ends.store(true, Relaxed);
    cpu.shutdown().wait();
    io.shutdown_background();
    let all: f64 = used.iter().map(|key| key.computed.as_secs_f64()).sum();
    let weights: u16 = KEYS.iter().map(|(weight, _)| weight).sum();
    let over_due = used.iter().map(|usage| {
        let due = all * f64::from(KEYS[usage.key.parse::<usize>().unwrap()].0) / f64::from(weights);
        usage.computed.as_secs_f64() / due
    });
    let worst = over_due.max_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs()));
    Sample::of("share", "", worst.unwrap_or(f64::NAN))
}

/// A job of `us` microseconds, in batches of so many.
pub const KINDS: [(u64, u64); 3] = [(0, 1), (0, 100), (100, 100)];

pub fn named(is_fair: bool, us: u64, batch: u64) -> String {
    let way = if is_fair { "fair" } else { "plain" };
    let at_once = if batch == 1 {
        "one by one"
    } else {
        "by the hundred"
    };
    format!("jobs of {us} µs {at_once}, {way}")
}

/// The time of a job, in batches whose jobs are submitted at once.
pub fn batches(is_fair: bool, jobs: u64, batch: u64, work: Work) -> Sample {
    let io = io_runtime(2);
    let cpu = lane(io.handle(), |lane| lane);
    let handle = cpu.handle().clone();
    let key = handle.with_key("one");
    let (begun, used) = (Instant::now(), cpu_time::of_process());
    let batches = async move {
        for _ in 0..jobs / batch {
            if is_fair {
                join_all((0..batch).map(|_| key.spawn_cpu(move || work.run()))).await;
            } else {
                join_all((0..batch).map(|_| handle.spawn_cpu(move || work.run()))).await;
            }
        }
    };
    io.block_on(io.spawn(batches)).unwrap();
    let used = cpu_time::of_process() - used;
    let each = |time: Duration| time.as_secs_f64() * 1e6 / jobs as f64;
    let mut sample = Sample::of("job", "µs", each(begun.elapsed()));
    sample.put("cpu", "µs", each(used));
    cpu.shutdown().wait();
    sample
}
