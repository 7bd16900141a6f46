//! Ten routes, of which five keep a thread of the I/O runtime.

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
use tracing::{Instrument, Span, info_span};
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

/// A wrong route keeps its thread.
#[derive(Clone)]
pub struct Episode {
    pub route: &'static str,
    pub began: Instant,
    pub ended: Option<Instant>,
}

#[derive(Clone, Default)]
pub struct Episodes(Arc<Mutex<Vec<Episode>>>);

impl Episodes {
    pub fn all(&self) -> Vec<Episode> {
        self.0.lock().expect("no holder panics").clone()
    }

    /// It lasts until the guard is dropped.
    fn begin(&self, route: &'static str) -> Ongoing {
        let mut episodes = self.0.lock().expect("no holder panics");
        episodes.push(Episode {
            route,
            began: Instant::now(),
            ended: None,
        });
        Ongoing(self.clone(), episodes.len() - 1)
    }
}

struct Ongoing(Episodes, usize);

impl Drop for Ongoing {
    fn drop(&mut self) {
        let mut episodes = self.0.0.lock().expect("no holder panics");
        episodes[self.1].ended = Some(Instant::now());
    }
}

#[derive(Clone)]
pub struct Site {
    pub cpu: Handle,
    pub episodes: Episodes,
    pub cache: Cache,
    pub fifo: Arc<Fifo>,
}

/// The handler of a route, in a span that is named as it.
macro_rules! route {
    ($path:literal, $handler:ident) => {
        get(|site| $handler(site).instrument(info_span!($path)))
    };
}

pub fn routes() -> Router<Site> {
    Router::new()
        .route("/parse", route!("/parse", parse))
        .route("/nap", route!("/nap", nap))
        .route("/file", route!("/file", file))
        .route("/cache", route!("/cache", cache))
        .route("/select", route!("/select", select))
        .route("/health", route!("/health", health))
        .route("/wait", route!("/wait", wait))
        .route("/small", route!("/small", small))
        .route("/offloaded", route!("/offloaded", offloaded))
        .route("/blocking", route!("/blocking", blocking))
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
    let _episode = site.episodes.begin("/parse");
    compute(TOO_LONG)
}

/// It sleeps as a thread does.
async fn nap(State(site): State<Site>) -> &'static str {
    let _episode = site.episodes.begin("/nap");
    thread::sleep(TOO_LONG);
    "slept"
}

/// It reads a file that is slow.
async fn file(State(site): State<Site>) -> String {
    let _episode = site.episodes.begin("/file");
    site.fifo.read().to_string()
}

/// It waits for a lock that a thread holds while it computes.
async fn cache(State(site): State<Site>) -> String {
    let entry = site.cache.refresh();
    let _episode = site.episodes.begin("/cache");
    entry.lock().expect("no holder panics").to_string()
}

/// A future that computes, after an `.await`, in an arm of `select!`.
async fn select(State(site): State<Site>) -> String {
    let answer = async {
        tokio::task::yield_now().await;
        let _episode = site.episodes.begin("/select");
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
    // On a thread that may be in a span for as long as it likes.
    let span = Span::current();
    let nap = spawn_blocking(move || span.in_scope(|| thread::sleep(TOO_LONG)));
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
