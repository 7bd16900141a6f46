//! Random jobs on a lane with a scout, against what the documentation says of them and no more:
//! each ends as it was meant to, the jobs of a site start in their order, no more run at a time
//! than may, the limit holds, and the counters balance. Also where a shutdown comes in between.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use twolane::{Backend, Handle, JoinError, Priority, Task};

use crate::computing::compute_for;
use crate::support::{BOTH, lanes_with, time_limit};

/// A few seconds in a debug build.
const CASES: u32 = 48;
const SITES: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Closure,
    /// A future that yields so often.
    Future(u8),
    Panics,
    /// Aborted right after its submission.
    Aborted,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    site: usize,
    /// What it computes.
    us: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
struct Case {
    backend: Backend,
    threads: usize,
    limit: Option<usize>,
    jobs: Vec<Job>,
    /// After so many jobs.
    shutdown: Option<usize>,
}

fn cases() -> impl Strategy<Value = Case> {
    let kind = prop_oneof![
        6 => Just(Kind::Closure),
        3 => (0..4_u8).prop_map(Kind::Future),
        1 => Just(Kind::Panics),
        1 => Just(Kind::Aborted),
    ];
    // Below what is long, about that, and above.
    let us =
        prop_oneof![8 => Just(0), 4 => 50..500_u64, 2 => 900..1_500_u64, 1 => 3_000..8_000_u64];
    let job = (0..SITES, us, kind).prop_map(|(site, us, kind)| Job { site, us, kind });
    let jobs = prop::collection::vec(job, 1..80);
    let backend = prop::sample::select(&BOTH[..]);
    let limit = prop::option::of(1..20_usize);
    let shutdown = prop::option::weighted(0.3, 0..80_usize);
    (backend, 1..3_usize, limit, jobs, shutdown).prop_map(
        |(backend, threads, limit, jobs, shutdown)| Case {
            backend,
            threads,
            limit,
            jobs,
            shutdown,
        },
    )
}

/// What the jobs of a case tell while they run.
#[derive(Default)]
struct Seen {
    runs: AtomicUsize,
    most: AtomicUsize,
    /// For each site, the jobs that have started.
    started: [Mutex<Vec<usize>>; SITES],
}

impl Seen {
    fn starts(&self, site: usize, nth: usize) {
        self.started[site].lock().unwrap().push(nth);
    }

    fn compute(&self, us: u64) {
        self.most
            .fetch_max(self.runs.fetch_add(1, SeqCst) + 1, SeqCst);
        compute_for(Duration::from_micros(us));
        self.runs.fetch_sub(1, SeqCst);
    }
}

fn submit(cpu: &Handle, nth: usize, job: Job, seen: &Arc<Seen>) -> Task<usize> {
    let site = cpu.with_name(&format!("scout_mix: {}", job.site));
    let seen = seen.clone();
    match job.kind {
        Kind::Future(yields) => site.spawn(async move {
            seen.starts(job.site, nth);
            for _ in 0..yields {
                seen.compute(job.us);
                twolane::yield_now().await;
            }
            nth
        }),
        kind => site.spawn_cpu(move || {
            seen.starts(job.site, nth);
            seen.compute(job.us);
            if let Kind::Panics = kind {
                std::panic::resume_unwind(Box::new("by plan"));
            }
            nth
        }),
    }
}

fn run(case: &Case) -> Result<(), TestCaseError> {
    let lanes = lanes_with(case.backend, case.threads, |builder| {
        let builder = builder.enable_scout();
        match case.limit {
            Some(limit) => builder.queue_limit(Priority::Normal, limit),
            None => builder,
        }
    });
    let cpu = lanes.cpu.handle();
    let seen = Arc::new(Seen::default());
    let mut tasks = Vec::new();
    for (nth, job) in case.jobs.iter().enumerate() {
        if case.shutdown == Some(nth) {
            lanes.cpu.shutdown_background();
        }
        let task = submit(&cpu, nth, *job, &seen);
        if let Kind::Aborted = job.kind {
            task.abort();
        }
        tasks.push(task);
        let in_use = cpu.metrics().permits_in_use;
        prop_assert!(case.limit.is_none_or(|limit| in_use <= limit as u64));
    }
    let mut ends = Ends::default();
    let is_closed = case.shutdown.is_some_and(|nth| nth < case.jobs.len());
    for ((nth, job), task) in case.jobs.iter().enumerate().zip(tasks) {
        let end = task.wait();
        ends.count(&end);
        match end {
            Ok(output) => {
                prop_assert_eq!(output, nth);
                prop_assert!(!matches!(job.kind, Kind::Panics));
            }
            Err(error) if error.is_panic() => prop_assert!(matches!(job.kind, Kind::Panics)),
            Err(error) if error.is_cancelled() => {
                prop_assert!(matches!(job.kind, Kind::Aborted));
            }
            Err(error) if error.is_queue_full() => prop_assert!(case.limit.is_some()),
            Err(error) => prop_assert!(error.is_shutdown() && is_closed, "{error}"),
        }
    }
    let remaining = lanes.cpu.shutdown().wait();
    prop_assert!(remaining.is_empty(), "{remaining:?}");

    // The lane's own threads, those that were lowered, and the scout.
    let most_threads = 2 * case.threads + 1;
    prop_assert!(seen.most.load(SeqCst) <= most_threads);
    for started in &seen.started {
        in_order(&started.lock().unwrap(), most_threads)?;
    }
    let found = cpu.metrics();
    prop_assert_eq!(found.completed, ends.completed);
    prop_assert_eq!(found.panicked, ends.panicked);
    prop_assert_eq!(found.cancelled, ends.cancelled);
    prop_assert_eq!((found.queued, found.running, found.suspended), (0, 0, 0));
    Ok(())
}

#[derive(Default)]
struct Ends {
    completed: u64,
    panicked: u64,
    cancelled: u64,
}

impl Ends {
    fn count(&mut self, end: &Result<usize, JoinError>) {
        match end {
            Ok(_) => self.completed += 1,
            Err(error) if error.is_panic() => self.panicked += 1,
            Err(error) if error.is_cancelled() => self.cancelled += 1,
            Err(_) => {}
        }
    }
}

/// A thread that has taken a job notes it a moment later, when others may have noted theirs: a
/// job passes fewer than there are threads.
pub(crate) fn in_order(started: &[usize], threads: usize) -> Result<(), TestCaseError> {
    for (at, nth) in started.iter().enumerate() {
        let passed = started[at + 1..].iter().filter(|later| *later < nth);
        prop_assert!(passed.count() < threads, "{started:?}");
    }
    Ok(())
}

#[test]
fn a_scout_changes_when_jobs_start_and_nothing_else() {
    let mut config = Config::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = CASES;
    }
    config.failure_persistence = None;
    config.max_shrink_time = 60_000;
    TestRunner::new(config)
        .run(&cases(), |case| {
            let _limit = time_limit();
            run(&case)
        })
        .unwrap();
}
