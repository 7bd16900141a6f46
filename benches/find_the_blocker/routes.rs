//! Ten routes, of which five keep a thread of the I/O runtime.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use rustix::time::{ClockId, clock_gettime};
use tokio::task::spawn_blocking;
use twolane::Handle;

/// How long a wrong route keeps its thread.
const TOO_LONG: Duration = Duration::from_millis(80);

/// With what the watch should say of it.
pub const WRONG: [(&str, &str); 5] = [
    ("/parse", "computes"),
    ("/nap", "blocks in clock_nanosleep"),
    ("/file", "blocks in read"),
    ("/cache", "blocks in futex"),
    ("/select", "computes"),
];

pub const INNOCENT: [&str; 5] = ["/health", "/wait", "/small", "/offloaded", "/blocking"];

/// When the wrong routes began to keep a thread for the first time.
#[derive(Clone, Default)]
pub struct Episodes(Arc<Mutex<HashMap<&'static str, Instant>>>);

impl Episodes {
    pub fn all(&self) -> HashMap<&'static str, Instant> {
        self.0.lock().expect("no holder panics").clone()
    }

    fn begin(&self, route: &'static str) {
        let mut episodes = self.0.lock().expect("no holder panics");
        episodes.entry(route).or_insert_with(Instant::now);
    }
}

#[derive(Clone)]
pub struct Site {
    pub cpu: Handle,
    pub episodes: Episodes,
    pub cache: Cache,
    pub fifo: Arc<Fifo>,
}

pub fn routes() -> Router<Site> {
    Router::new()
        .route("/parse", get(parse))
        .route("/nap", get(nap))
        .route("/file", get(file))
        .route("/cache", get(cache))
        .route("/select", get(select))
        .route("/health", get(health))
        .route("/wait", get(wait))
        .route("/small", get(small))
        .route("/offloaded", get(offloaded))
        .route("/blocking", get(blocking))
}

/// So much of a core's time, also if others have the core in between.
fn compute(time: Duration) -> String {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime));
    let now = || now().expect("this clock begins at 0");
    let (began, mut n) = (now(), 1_u64);
    while now() - began < time {
        n = black_box(n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7));
    }
    n.to_string()
}

/// It computes.
async fn parse(State(site): State<Site>) -> String {
    site.episodes.begin("/parse");
    compute(TOO_LONG)
}

/// It sleeps as a thread does.
async fn nap(State(site): State<Site>) -> &'static str {
    site.episodes.begin("/nap");
    thread::sleep(TOO_LONG);
    "slept"
}

/// It reads a file that is slow.
async fn file(State(site): State<Site>) -> String {
    site.episodes.begin("/file");
    site.fifo.read().to_string()
}

/// It waits for a lock that a thread holds while it computes.
async fn cache(State(site): State<Site>) -> String {
    let entry = site.cache.refresh();
    site.episodes.begin("/cache");
    entry.lock().expect("no holder panics").to_string()
}

/// A future that computes, after an `.await`, in an arm of `select!`.
async fn select(State(site): State<Site>) -> String {
    let answer = async {
        tokio::task::yield_now().await;
        site.episodes.begin("/select");
        compute(TOO_LONG)
    };
    tokio::select! {
        answer = answer => answer,
        () = tokio::time::sleep(Duration::from_secs(10)) => "late".to_owned(),
    }
}

async fn health(_: State<Site>) -> &'static str {
    "ok"
}

async fn small(_: State<Site>) -> String {
    compute(Duration::from_millis(1))
}

async fn wait(_: State<Site>) -> &'static str {
    tokio::time::sleep(TOO_LONG).await;
    "waited"
}

async fn offloaded(State(site): State<Site>) -> String {
    let answer = site.cpu.spawn_cpu(|| compute(TOO_LONG));
    answer.await.expect("the lane is not shut down")
}

async fn blocking(_: State<Site>) -> &'static str {
    let nap = spawn_blocking(|| thread::sleep(TOO_LONG));
    nap.await.expect("it does not panic");
    "slept elsewhere"
}

/// A value that a thread computes anew under its lock.
#[derive(Clone, Default)]
pub struct Cache(Arc<Mutex<u64>>);

impl Cache {
    /// Returns the value, with its lock held by the thread that computes it.
    fn refresh(&self) -> Arc<Mutex<u64>> {
        let (entry, (holds, is_held)) = (self.0.clone(), std::sync::mpsc::channel());
        thread::spawn(move || {
            let mut entry = entry.lock().expect("no holder panics");
            // An error means that the request is gone.
            let _ = holds.send(());
            compute(TOO_LONG);
            *entry += 1;
        });
        is_held.recv().expect("the thread holds it");
        self.0.clone()
    }
}

/// A file that has its next byte 80 ms after it was asked for one.
pub struct Fifo {
    path: PathBuf,
    reader: Mutex<File>,
    writer: Mutex<File>,
}

impl Fifo {
    pub fn new() -> Arc<Self> {
        let path = std::env::temp_dir().join(format!("find_the_blocker-{}", std::process::id()));
        // One of the run before in this process.
        let _ = std::fs::remove_file(&path);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).expect("a FIFO");
        // For both, so that neither open waits for the other.
        let open = || OpenOptions::new().read(true).write(true).open(&path);
        let (reader, writer) = (open().expect("a FIFO"), open().expect("a FIFO"));
        Arc::new(Self {
            path,
            reader: Mutex::new(reader),
            writer: Mutex::new(writer),
        })
    }

    fn read(self: &Arc<Self>) -> u8 {
        let fifo = self.clone();
        thread::spawn(move || {
            thread::sleep(TOO_LONG);
            let mut writer = fifo.writer.lock().expect("no holder panics");
            writer.write_all(&[7]).expect("a FIFO");
        });
        let mut byte = [0];
        let mut reader = self.reader.lock().expect("no holder panics");
        reader.read_exact(&mut byte).expect("a FIFO");
        byte[0]
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        // It may be gone.
        let _ = std::fs::remove_file(&self.path);
    }
}
