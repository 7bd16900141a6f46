//! The service: one contender in this process, until it is killed.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tower::BoxError;
use twolane::axum::JobError;
use twolane::{CpuRuntime, Handle, Priority};
use twolane_benches::tail::work::Work;

/// For longer than that no request should wait.
pub const MAX_WAIT: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    NoLimit,
    MaxWait,
    QueueLimit,
    Semaphores,
    Rayon,
    InTheHandler,
    SpawnBlocking,
}

impl Side {
    pub const ALL: [(&str, Self); 5] = [
        ("no limit", Self::NoLimit),
        ("max_wait", Self::MaxWait),
        ("queue_limit", Self::QueueLimit),
        ("semaphores", Self::Semaphores),
        ("rayon", Self::Rayon),
    ];

    /// At loads from half of what the service can do.
    pub const OF_LOADS: [(&str, Self); 4] = [
        ("in the handler", Self::InTheHandler),
        ("spawn_blocking", Self::SpawnBlocking),
        ("semaphores", Self::Semaphores),
        ("max_wait", Self::MaxWait),
    ];
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lengths {
    Same,
    Mixed,
}

impl Lengths {
    pub const ALL: [(&str, Self); 2] = [("20 ms", Self::Same), ("1 to 100 ms", Self::Mixed)];

    pub fn pick(self) -> u64 {
        match self {
            Self::Same => 20,
            Self::Mixed => fastrand::u64(1..=100),
        }
    }

    pub fn mean(self) -> Duration {
        match self {
            Self::Same => Duration::from_millis(20),
            Self::Mixed => Duration::from_micros(50_500),
        }
    }
}

/// The role of a process.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Server {
    pub side: Side,
    pub lengths: Lengths,
    pub threads: usize,
    /// What takes a millisecond.
    pub ms: Work,
}

/// What it has done since the last question.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Done {
    /// How long jobs have waited, in nanoseconds.
    pub waits: Vec<u64>,
    pub computed_ms: u64,
    pub refused: u64,
    /// The most that it has taken so far.
    pub memory_kib: u64,
}

#[derive(Clone)]
struct Service {
    way: Way,
    ms: Work,
    done: Arc<Mutex<Done>>,
}

#[derive(Clone)]
enum Way {
    InPlace,
    Lane(Handle),
    Blocking(Arc<Semaphore>, Arc<Semaphore>),
    Rayon(Arc<Semaphore>, Arc<rayon::ThreadPool>),
}

impl Server {
    /// Says on stdout which port it is.
    pub fn run(self) -> Result<(), BoxError> {
        // By formula: those that run, and as many as they serve in the longest wait.
        let wait = MAX_WAIT.as_secs_f64() / self.lengths.mean().as_secs_f64();
        let places = (self.threads as f64 * (1.0 + wait)) as usize;
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(async {
            let lane = CpuRuntime::builder().worker_threads(self.threads);
            let lane = match self.side {
                Side::MaxWait => lane.max_wait(Priority::Normal, MAX_WAIT),
                Side::QueueLimit => lane.queue_limit(Priority::Normal, places),
                _ => lane,
            };
            let lane = lane.build()?;
            let way = match self.side {
                Side::InTheHandler => Way::InPlace,
                Side::SpawnBlocking => {
                    let no_limit = || semaphore(Semaphore::MAX_PERMITS);
                    Way::Blocking(no_limit(), no_limit())
                }
                Side::Semaphores => Way::Blocking(semaphore(places), semaphore(self.threads)),
                Side::Rayon => {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads);
                    let pool = pool.start_handler(|_| {
                        let _ = giveway::Weight::raised_by(16).apply();
                    });
                    Way::Rayon(semaphore(places), Arc::new(pool.build()?))
                }
                _ => Way::Lane(lane.handle().clone()),
            };
            let service = Service {
                way,
                ms: self.ms,
                done: Arc::default(),
            };
            let router = Router::new()
                .route("/work/{ms}", get(work))
                .route("/health", get(async || "ok"))
                .route("/done", get(done))
                .with_state(service);
            let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
            println!("port {}", listener.local_addr()?.port());
            let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
            axum::serve(listener, router).await?;
            Ok(())
        })
    }
}

async fn work(State(service): State<Service>, Path(ms): Path<u64>) -> Response {
    let (submitted, of_job) = (Instant::now(), service.clone());
    let job = move || {
        let waited = submitted.elapsed().as_nanos() as u64;
        of_job.done.lock().unwrap().waits.push(waited);
        of_job.ms.times(ms as f64).run();
        of_job.done.lock().unwrap().computed_ms += ms;
    };
    let refused = || {
        service.done.lock().unwrap().refused += 1;
        StatusCode::SERVICE_UNAVAILABLE
    };
    match &service.way {
        Way::InPlace => {
            job();
            "done".into_response()
        }
        Way::Lane(lane) => match lane.spawn_cpu(job).await {
            Ok(()) => "done".into_response(),
            Err(error) => {
                refused();
                JobError::from(error).into_response()
            }
        },
        Way::Blocking(places, cores) => {
            let Ok(place) = places.clone().try_acquire_owned() else {
                return refused().into_response();
            };
            let core = cores.clone().acquire_owned().await;
            // The permits stay with the job if the client leaves.
            let job = tokio::task::spawn_blocking(move || {
                let _permits = (place, core);
                job();
            });
            job.await.map(|()| "done").unwrap().into_response()
        }
        Way::Rayon(places, pool) => {
            let Ok(place) = places.clone().try_acquire_owned() else {
                return refused().into_response();
            };
            let (tell, told) = oneshot::channel();
            pool.spawn(move || {
                job();
                drop(place);
                let _ = tell.send("done");
            });
            told.await.unwrap().into_response()
        }
    }
}

async fn done(State(service): State<Service>) -> Vec<u8> {
    let mut done = std::mem::take(&mut *service.done.lock().unwrap());
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = most.and_then(|most| most.trim().strip_suffix(" kB")?.parse().ok());
    done.memory_kib = kib.unwrap_or(0);
    serde_json::to_vec(&done).unwrap()
}
