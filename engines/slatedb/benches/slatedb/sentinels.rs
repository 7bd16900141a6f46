//! What a timer of 1 ms sees: in a task of the service's runtime, and in a thread of its own.
//!
//! Tokio's timers fire at its ticks of 1 ms. The task's deadlines lie on them, so that what it
//! measures is how late it is, and not where in a tick its deadline lies.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::rows::Rows;

const PERIOD: Duration = Duration::from_millis(1);
/// Sleeps by which the task finds the ticks.
const TO_CALIBRATE: usize = 50;
/// From a deadline to the tick that it is meant for.
const BEFORE_TICK: Duration = Duration::from_micros(50);

pub struct Sentinels {
    over: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<Histogram<u64>>,
    thread: thread::JoinHandle<Histogram<u64>>,
}

impl Sentinels {
    /// Call it while nothing else runs.
    pub async fn start(service: &Handle) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let is_over = over.clone();
        let first = service.spawn(first_tick()).await.unwrap();
        let task = service.spawn(async move {
            let mut late = Lateness::new();
            let mut deadline = first;
            while !is_over.load(Relaxed) {
                deadline = late.next(deadline);
                tokio::time::sleep_until(deadline.into()).await;
                late.record(deadline);
            }
            late.0
        });
        let is_over = over.clone();
        let thread = thread::spawn(move || {
            let mut late = Lateness::new();
            let mut deadline = Instant::now();
            while !is_over.load(Relaxed) {
                deadline = late.next(deadline);
                thread::sleep(deadline.saturating_duration_since(Instant::now()));
                late.record(deadline);
            }
            late.0
        });
        Self { over, task, thread }
    }

    /// How late they were, in nanoseconds: the task, and the thread.
    pub async fn stop(self) -> (Histogram<u64>, Histogram<u64>) {
        self.over.store(true, Relaxed);
        (self.task.await.unwrap(), self.thread.join().unwrap())
    }
}

/// What the sentinels see while a thread wakes a task of the service, which makes rows.
pub async fn floor(service: &Handle, rows: Rows) -> (Histogram<u64>, Histogram<u64>) {
    let sentinels = Sentinels::start(service).await;
    let woken = Arc::new(Notify::new());
    let waits = woken.clone();
    let task = service.spawn(async move {
        for batch in rows.batches().cycle() {
            waits.notified().await;
            batch.for_each(|row| drop(black_box(rows.row(row))));
        }
    });
    tokio::task::spawn_blocking(move || {
        for _ in 0..rows.n / 64 {
            thread::sleep(Duration::from_micros(fastrand::u64(50..500)));
            woken.notify_one();
        }
    })
    .await
    .unwrap();
    task.abort();
    sentinels.stop().await
}

struct Lateness(Histogram<u64>);

impl Lateness {
    fn new() -> Self {
        Self(twolane_benches::findings::empty_histogram())
    }

    /// The next one that has not passed. Those that a long stall has covered are as late as their
    /// distance from its end.
    fn next(&mut self, deadline: Instant) -> Instant {
        let mut next = deadline + PERIOD;
        while next < Instant::now() {
            self.record(next);
            next += PERIOD;
        }
        next
    }

    fn record(&mut self, deadline: Instant) {
        self.0
            .saturating_record(deadline.elapsed().as_nanos() as u64);
    }
}

/// An instant shortly before a tick.
async fn first_tick() -> Instant {
    tokio::time::sleep(PERIOD).await;
    // So that the ticks lie in the middle of its milliseconds.
    let epoch = Instant::now() - PERIOD / 2;
    let mut phase = PERIOD;
    for _ in 0..TO_CALIBRATE {
        tokio::time::sleep(PERIOD).await;
        let woke = epoch.elapsed().as_nanos() as u64;
        phase = phase.min(Duration::from_nanos(woke % PERIOD.as_nanos() as u64));
    }
    let whole = epoch.elapsed().as_millis() as u32 + 2;
    epoch + PERIOD * whole + phase - BEFORE_TICK
}
