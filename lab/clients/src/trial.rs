//! One trial: jobs and the I/O side use one client at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::clock::{Work, now};
use crate::first_poll::after_first_poll;
use crate::lanes::{Cpu, Lanes, Lost, Side};
use crate::rows::{Answer, Ask, Make, Ready, World};
use crate::servers::Server;
use crate::{BoxError, panics};

/// What a job computes after its request.
pub const JOB: Duration = Duration::from_millis(200);
/// A request of the I/O side that takes longer is late.
pub const LATE: Duration = Duration::from_millis(100);
/// If the same request by another client is late by this, it is the machine that is late.
const BUSY_MACHINE: Duration = Duration::from_millis(50);
/// When a request counts as one that never ends.
const NEVER: Duration = Duration::from_secs(10);
/// For the jobs that still run when the requests are done.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two tries of a job that failed.
const PAUSE: Duration = Duration::from_millis(100);
/// Of the connections that a warm pool has.
const POOL: usize = 5;

/// The conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Setup {
    pub jobs: usize,
    /// The client has used its connections before.
    pub warm: bool,
    /// The server cuts all connections at times, and a job is the first to ask again.
    pub cuts: bool,
}

/// How many requests the I/O side makes, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub requests: usize,
    pub every: Duration,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Of the I/O side: the time of each request that was answered, in ms, in order.
    pub latencies: Vec<f64>,
    pub requests: usize,
    pub stalls: usize,
    /// Late, as was the same request by a client that no job uses.
    pub late_with_the_machine: usize,
    pub request_panics: usize,
    /// Errors, of which a cut makes some.
    pub request_errors: usize,
    pub jobs: usize,
    pub job_panics: usize,
    pub job_errors: usize,
    /// From a server's answer to the job's next step, in ms, in order.
    pub resumes: Vec<f64>,
    /// Jobs that did not end.
    pub hung: usize,
    /// What the first panic said, and the first error.
    pub said: Option<String>,
}

impl Outcome {
    pub fn quantile(of: &[f64], q: f64) -> f64 {
        match of.len() {
            0 => f64::NAN,
            n => of[((n - 1) as f64 * q).round() as usize],
        }
    }
}

/// What the parts of a trial share.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// A job has polled its request.
    asked: Notify,
    outcome: Mutex<Outcome>,
}

impl Shared {
    fn note(&self, note: impl FnOnce(&mut Outcome)) {
        note(&mut self.outcome.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Runs one. `server` is the client's own, if it has one.
pub fn run(
    make: &Make,
    side: Side,
    setup: Setup,
    load: Load,
    server: Option<&Arc<Server>>,
) -> Result<Outcome, BoxError> {
    panics::forget();
    let lanes = Lanes::start(side)?;
    let cpu = lanes.cpu();
    let address = server.map_or(([127, 0, 0, 1], 0).into(), |server| server.address());
    let world = World {
        address,
        cpu: cpu.clone(),
        work: Work::computing(),
    };
    let shared = Arc::new(Shared::default());
    let of_trial = shared.clone();
    let server = server.cloned();
    // On a worker: what a client spawns belongs to the I/O runtime in either case, but
    // the thread of `block_on` is none of it.
    let (made, alone) = (make(world.clone()), make(world));
    let trial = lanes.io.spawn(async move {
        let (ready, alone) = (made.await?, alone.await?.request);
        if setup.warm {
            warm(&ready.request).await;
            warm(&alone).await;
        }
        both_sides(&of_trial, &ready, &alone, &cpu, setup, load, server).await;
        Ok::<_, BoxError>(())
    });
    lanes.io.block_on(trial)??;
    lanes.end();
    let mut outcome = std::mem::take(
        &mut *shared
            .outcome
            .lock()
            .unwrap_or_else(PoisonError::into_inner),
    );
    outcome.latencies.sort_by(f64::total_cmp);
    outcome.resumes.sort_by(f64::total_cmp);
    outcome.said = panics::first().or(outcome.said);
    Ok(outcome)
}

/// Opens the connections.
async fn warm(request: &Ask) {
    let mut requests = JoinSet::new();
    for _ in 0..2 * POOL {
        requests.spawn(request());
    }
    // Those that fail will fail again.
    while requests.join_next().await.is_some() {}
}

async fn both_sides(
    shared: &Arc<Shared>,
    ready: &Ready,
    alone: &Ask,
    cpu: &Cpu,
    setup: Setup,
    load: Load,
    server: Option<Arc<Server>>,
) {
    let mut slots = JoinSet::new();
    for _ in 0..setup.jobs {
        slots.spawn(slot(shared.clone(), ready.job.clone(), cpu.clone()));
    }
    let mut clock = interval(load.every);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut asking: Vec<JoinHandle<()>> = Vec::new();
    for n in 0..load.requests {
        clock.tick().await;
        // Three times.
        if setup.cuts && n % (load.requests / 4).max(1) == 0 && n > 0 {
            let _ = timeout(NEVER, ends_of(shared, &mut asking)).await;
            cut(shared, server.as_ref()).await;
        }
        let asked = request(shared.clone(), ready.request.clone(), alone.clone());
        asking.push(tokio::spawn(asked));
    }
    ends_of(shared, &mut asking).await;
    shared.stop.store(true, Relaxed);
    let ended = async { while slots.join_next().await.is_some() {} };
    if timeout(PATIENCE, ended).await.is_err() {
        let hung = slots.len();
        shared.note(|outcome| outcome.hung += hung);
    }
}

async fn ends_of(shared: &Shared, asking: &mut Vec<JoinHandle<()>>) {
    while let Some(asked) = asking.pop() {
        if asked.await.is_err_and(|error| error.is_panic()) {
            shared.note(|outcome| outcome.request_panics += 1);
        }
    }
}

/// A request of the I/O side, and the same by a client that no job uses.
async fn request(shared: Arc<Shared>, request: Ask, alone: Ask) {
    shared.note(|outcome| outcome.requests += 1);
    let control = tokio::spawn(timed(alone));
    let (answer, took) = timed(request).await;
    let (_, control) = control.await.unwrap_or((None, Duration::ZERO));
    shared.note(|outcome| {
        match took > LATE {
            true if control > BUSY_MACHINE => outcome.late_with_the_machine += 1,
            true => outcome.stalls += 1,
            false => {}
        }
        match answer {
            Some(Ok(_)) => outcome.latencies.push(took.as_secs_f64() * 1e3),
            Some(Err(error)) => {
                outcome.request_errors += 1;
                outcome.said.get_or_insert_with(|| error.to_string());
            }
            None => {
                outcome.said.get_or_insert_with(|| "never answered".into());
            }
        }
    });
}

/// The answer, if there is one, and its time.
async fn timed(request: Ask) -> (Option<Result<Answer, BoxError>>, Duration) {
    let start = Instant::now();
    let answer = timeout(NEVER, request()).await.ok();
    (answer, start.elapsed())
}

/// Cuts all connections, and waits until a job has asked after that.
async fn cut(shared: &Shared, server: Option<&Arc<Server>>) {
    let Some(server) = server.cloned() else {
        return;
    };
    let cut = tokio::task::spawn_blocking(move || server.cut());
    if let Ok(Err(error)) = cut.await {
        shared.note(|outcome| {
            outcome.said.get_or_insert_with(|| format!("cut: {error}"));
        });
    }
    // Or none comes: all of them hang.
    let _ = timeout(NEVER, shared.asked.notified()).await;
}

/// One job after the other.
async fn slot(shared: Arc<Shared>, ask: Ask, cpu: Cpu) {
    while !shared.stop.load(Relaxed) {
        let job = job(shared.clone(), ask.clone());
        let ended = cpu.spawn(job).await;
        let failed = !matches!(ended, Ok(Ok(())));
        shared.note(|outcome| {
            outcome.jobs += 1;
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    outcome.job_errors += 1;
                    outcome.said.get_or_insert_with(|| error.to_string());
                }
                Err(Lost::Panicked) => outcome.job_panics += 1,
                Err(Lost::Other) => outcome.job_errors += 1,
            }
        });
        if failed {
            sleep(PAUSE).await;
        }
    }
}

async fn job(shared: Arc<Shared>, ask: Ask) -> Result<(), BoxError> {
    let answer = after_first_poll(ask(), || shared.asked.notify_waiters()).await?;
    if let Some(at) = answer.at {
        let ms = (now() - at) as f64 / 1e3;
        shared.note(|outcome| outcome.resumes.push(ms));
    }
    if !answer.computed {
        Work::computing().of(JOB);
    }
    Ok(())
}
