//! One contender under one load: this process, until the counted time is over.

use std::fs;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokenizers::Tokenizer;
use tokio::runtime::{Builder, Handle};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use twolane::CpuRuntime;
use twolane_benches::tail::client::{Schedule, ask, connect};
use twolane_benches::tail::echo::EchoLane;
use twolane_benches::{child, cores, lane, tail};

/// So many at a time, of a load that is closed.
const CLIENTS: usize = 64;
const EVERY: Duration = Duration::from_millis(5);
const TEXT: &str = include_str!("../tokenize.rs");

#[derive(Clone, Copy, Serialize, Deserialize)]
pub enum Way {
    Worker,
    Blocking,
    Semaphore,
    Twolane,
}

impl Way {
    pub const ALL: [(&str, Self); 4] = [
        ("worker", Self::Worker),
        ("spawn_blocking", Self::Blocking),
        ("semaphore", Self::Semaphore),
        ("twolane", Self::Twolane),
    ];
}

#[derive(Clone, Copy, Serialize, Deserialize)]
pub enum Load {
    Closed {
        bytes: usize,
    },
    /// Half of what the cores can encode.
    Half {
        bytes: usize,
    },
}

/// The role of a process.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Gateway {
    pub way: Way,
    pub load: Load,
    pub blocking_threads: usize,
    pub counted_ms: u64,
}

/// Latencies in nanoseconds.
#[derive(Default, Serialize, Deserialize)]
pub struct Done {
    pub prompts: Vec<u64>,
    pub files: Vec<u64>,
    pub echoes: Vec<u64>,
    /// The most that the process has had.
    pub memory_kib: u64,
}

/// Where a prompt is encoded.
enum Place {
    Worker,
    Blocking,
    Semaphore(Semaphore),
    Lane(CpuRuntime),
}

struct Encoder {
    tokenizer: Arc<Tokenizer>,
    place: Place,
    /// Long enough for a prompt that begins anywhere in [`TEXT`].
    text: String,
    bytes: usize,
}

impl Encoder {
    fn new(gateway: Gateway, io: &Handle) -> Self {
        let (Load::Closed { bytes } | Load::Half { bytes }) = gateway.load;
        Self {
            tokenizer: Arc::new(crate::recipe::tokenizer().unwrap()),
            place: match gateway.way {
                Way::Worker => Place::Worker,
                Way::Blocking => Place::Blocking,
                Way::Semaphore => Place::Semaphore(Semaphore::new(cores())),
                Way::Twolane => Place::Lane(lane(io, |lane| lane)),
            },
            text: TEXT.repeat(bytes / TEXT.len() + 2),
            bytes,
        }
    }

    fn prompt(&self) -> &str {
        let from = fastrand::usize(0..TEXT.len());
        &self.text[from..][..self.bytes]
    }

    async fn encode(&self) -> usize {
        let (prompt, tokenizer) = (self.prompt(), self.tokenizer.clone());
        let job = |prompt: String| move || tokenizer.encode_fast(prompt, false).unwrap().len();
        match &self.place {
            Place::Worker => self.in_place(),
            Place::Blocking => spawn_blocking(job(prompt.to_owned())).await.unwrap(),
            Place::Semaphore(cores) => {
                let _core = cores.acquire().await.unwrap();
                spawn_blocking(job(prompt.to_owned())).await.unwrap()
            }
            Place::Lane(cpu) => cpu.spawn_cpu(job(prompt.to_owned())).await.unwrap(),
        }
    }

    fn in_place(&self) -> usize {
        self.tokenizer
            .encode_fast(self.prompt(), false)
            .unwrap()
            .len()
    }
}

impl Gateway {
    /// Ends the process, and with it what is still to be encoded.
    pub fn run(self) -> ! {
        let mut runtime = Builder::new_multi_thread();
        runtime.worker_threads(cores()).enable_all();
        runtime.max_blocking_threads(self.blocking_threads);
        let echo = EchoLane::on(runtime.build().unwrap());
        let io = echo.handle();
        let encoder = Arc::new(Encoder::new(self, io));
        let socket = connect(echo.address()).unwrap();
        let pause = match self.load {
            Load::Closed { .. } => None,
            Load::Half { .. } => Some(time_of_one(&encoder) * 2 / cores() as u32),
        };
        let schedule = Schedule::starting(Instant::now(), Duration::from_millis(self.counted_ms));
        let prompts: Arc<Mutex<Vec<u64>>> = Arc::default();
        match pause {
            Some(mean) => drop(io.spawn(by_chance(encoder, mean, schedule, prompts.clone()))),
            None => {
                for _ in 0..CLIENTS {
                    let (encoder, prompts) = (encoder.clone(), prompts.clone());
                    io.spawn(async move {
                        while Instant::now() < schedule.end {
                            one(&encoder, Instant::now(), schedule, &prompts).await;
                            // As where the next one comes from a socket.
                            tokio::task::yield_now().await;
                        }
                    });
                }
            }
        }
        let files = thread::spawn({
            let io = io.clone();
            move || files(&io, schedule)
        });
        let echoes = ask(socket, schedule).unwrap().from_intended;
        let echoes = echoes.iter_recorded();
        child::answer(&Done {
            prompts: std::mem::take(&mut *prompts.lock().unwrap()),
            files: files.join().unwrap(),
            echoes: echoes
                .flat_map(|it| (0..it.count_at_value()).map(move |_| it.value_iterated_to()))
                .collect(),
            memory_kib: most_memory_kib().unwrap_or(0),
        })
    }
}

async fn one(encoder: &Encoder, due: Instant, schedule: Schedule, done: &Mutex<Vec<u64>>) {
    assert!(encoder.encode().await > 0);
    let now = Instant::now();
    if (schedule.warm..schedule.end).contains(&now) {
        done.lock().unwrap().push((now - due).as_nanos() as u64);
    }
}

async fn by_chance(
    encoder: Arc<Encoder>,
    mean: Duration,
    schedule: Schedule,
    done: Arc<Mutex<Vec<u64>>>,
) {
    let mut due = Instant::now();
    while due < schedule.end {
        tokio::time::sleep_until(due.into()).await;
        let (encoder, done) = (encoder.clone(), done.clone());
        tokio::spawn(async move { one(&encoder, due, schedule, &done).await });
        due += mean.mul_f64(-(1.0 - fastrand::f64()).ln());
    }
}

/// On an idle machine, with what the tokenizer has learned by then.
fn time_of_one(encoder: &Encoder) -> Duration {
    let times = std::iter::repeat_with(|| {
        let begun = Instant::now();
        encoder.in_place();
        begun.elapsed()
    });
    times.take(5).min().unwrap()
}

fn most_memory_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let most = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    most.trim().strip_suffix(" kB")?.parse().ok()
}

/// From when each was due.
fn files(io: &Handle, schedule: Schedule) -> Vec<u64> {
    let mut latencies = Vec::new();
    let mut due = schedule.warm;
    while due < schedule.end {
        tail::sleep_until(due);
        let length = io.spawn_blocking(|| fs::metadata("/proc/self/exe").unwrap().len());
        assert!(io.block_on(length).unwrap() > 0);
        latencies.push(due.elapsed().as_nanos() as u64);
        due += EVERY;
    }
    latencies
}
