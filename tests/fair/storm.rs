//! All of it at once: tenants that flood, cancel, panic, wait for each other's jobs, and a lane that
//! ends meanwhile. No task hangs, and no job is lost: each is dropped, whatever becomes of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use twolane::{CpuRuntime, Handle, Key};

use crate::dice::{Dice, seed_of_environment};

#[derive(Default)]
struct Counts {
    submitted: AtomicUsize,
    ran: AtomicUsize,
    dropped: AtomicUsize,
}

/// Counts that it was dropped, and that it did not run twice.
struct Job(Arc<Counts>);

impl Job {
    fn run(self, panics: bool, spins: u64) {
        self.0.ran.fetch_add(1, SeqCst);
        std::hint::black_box((0..spins).fold(0, |sum, n| std::hint::black_box(sum ^ n)));
        assert!(!panics, "on purpose");
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, SeqCst);
    }
}

async fn tenant(cpu: Handle, max_jobs: u16, mut dice: Dice, counts: Arc<Counts>) {
    for _ in 0..dice.below(60) {
        let key = Key::new(dice.below(12).to_string()).with_max_jobs(max_jobs);
        let key = match dice.once_in(8) {
            true => cpu.clone(),
            false => cpu.with_key(key.with_weight(1 + dice.below(4) as u16)),
        };
        let key = match dice.once_in(6) {
            true => key.with_deadline(Instant::now() + Duration::from_micros(dice.below(3_000))),
            false => key,
        };
        counts.submitted.fetch_add(1, SeqCst);
        let job = Job(counts.clone());
        let (panics, spins) = (dice.once_in(10), dice.below(40_000));
        let (inner, outer) = (key.clone(), counts.clone());
        let mut task = match dice.below(5) {
            0..=1 => key.spawn_cpu(move || job.run(panics, spins)),
            2 => key.spawn_cpu_with(move |context| {
                context.checkpoint()?;
                job.run(panics, spins);
                context.checkpoint()
            }),
            3 => key.spawn(async move {
                tokio::task::yield_now().await;
                twolane::yield_now().await;
                job.run(panics, spins);
            }),
            _ => key.spawn(async move {
                outer.submitted.fetch_add(1, SeqCst);
                let nested = Job(outer.clone());
                let nested = inner.spawn_cpu(move || nested.run(false, spins));
                job.run(false, spins);
                let _ = nested.await;
            }),
        };
        match dice.below(6) {
            0 => drop(task),
            1 => task.detach(),
            2 => {
                let _ =
                    tokio::time::timeout(Duration::from_micros(dice.below(500)), &mut task).await;
            }
            _ => drop(task.await),
        }
    }
}

fn round(seed: u64) -> usize {
    let mut dice = Dice::of(seed);
    let counts = Arc::new(Counts::default());
    let io = tokio::runtime::Runtime::new().unwrap();
    let builder = CpuRuntime::builder().io_handle(io.handle().clone());
    let cpu = builder
        .worker_threads(1 + dice.below(3) as usize)
        .build()
        .unwrap();
    let max_jobs = 1 + dice.below(8) as u16;
    io.block_on(async {
        let mut tenants = JoinSet::new();
        for _ in 0..8 {
            tenants.spawn(tenant(
                cpu.handle().clone(),
                max_jobs,
                dice.fork(),
                counts.clone(),
            ));
        }
        if dice.once_in(2) {
            let shutdown = cpu.shutdown();
            tenants.join_all().await;
            shutdown.await;
        } else {
            tenants.join_all().await;
            let shutdown = cpu.shutdown();
            shutdown.await;
        }
    });
    // And with it the tasks that nobody awaits.
    drop(io);
    let usage = cpu.handle().call_sites();
    let usage = usage.keys();
    assert!(
        usage.iter().all(|usage| usage.queued == 0),
        "seed {seed}: {usage:?}"
    );
    let (submitted, ran) = (counts.submitted.load(SeqCst), counts.ran.load(SeqCst));
    assert_eq!(counts.dropped.load(SeqCst), submitted, "seed {seed}");
    ran
}

#[test]
fn everything_at_once() {
    let seconds = std::env::var("TWOLANE_STORM_SECONDS");
    let seconds = seconds.map_or(1, |seconds| seconds.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut seed, mut rounds, mut ran) = (seed_of_environment(), 0, 0);
    while rounds < 20 || Instant::now() < end {
        ran += round(seed);
        rounds += 1;
        seed = Dice::of(seed).below(u64::MAX);
    }
    assert!(ran > 0);
    eprintln!("{rounds} rounds, {ran} jobs ran");
}
