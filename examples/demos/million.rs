//! A million units of work wait for an event. How much memory does that take?
//!
//! As people do it: a thread each, or `spawn_blocking`, which has 512 threads at most: 512 units wait
//! at a time, and the others wait for these. On twolane a unit is a *future*, which holds no thread
//! while it waits: all wait at a time. What computes is a *closure*: a million of them in the queue
//! of the lane is the load of a bad day.
//!
//! Each contender runs in a process of its own. "Bytes each" is how much its resident memory grows,
//! with the handles that one awaits (on Linux). The kernel's stack of a thread is not in it, and
//! there are 1,000 threads only: a million would take some GB. It fails if a unit takes more than
//! 1,024 bytes on twolane.
//!
//! It is no benchmark: `cargo bench --bench million` has goroutines, Tokio's tasks, and the time.
//!
//! ```text
//! cargo run --release -p demos --example million   # 5 seconds
//! ```

use std::process::Command;
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use std::{env, fs, thread};

use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use twolane::CpuRuntime;

type Error = Box<dyn std::error::Error>;

const MILLION: usize = 1_000_000;
const THREADS: usize = 1_000;
const BLOCKING_THREADS: usize = 512;
const BYTES_AT_MOST: usize = 1_024;

/// Open when the event has come: what a thread waits for,
static GATE: RwLock<()> = RwLock::new(());
/// and what a future waits for.
static EVENT: Semaphore = Semaphore::const_new(0);
static WAITING: AtomicUsize = AtomicUsize::new(0);

fn wait_on_the_thread() {
    WAITING.fetch_add(1, Relaxed);
    drop(GATE.read());
}

async fn wait() {
    WAITING.fetch_add(1, Relaxed);
    // An error: it is closed, which is the event.
    let _ = EVENT.acquire().await;
}

fn main() -> Result<(), Error> {
    if let Some(contender) = env::args().nth(1) {
        return measure(&contender);
    }
    println!(
        "{:28}{:>10}{:>16}{:>12}",
        "", "units", "wait at a time", "bytes each"
    );
    for contender in [
        "thread::spawn",
        "spawn_blocking",
        "twolane, spawn",
        "twolane, spawn_cpu",
    ] {
        let child = Command::new(env::current_exe()?).arg(contender).status()?;
        if !child.success() {
            return Err(format!("{contender} failed").into());
        }
    }
    println!("\nOn twolane all of them wait at a time, as futures, and none holds a thread.");
    Ok(())
}

fn measure(contender: &str) -> Result<(), Error> {
    let mut io = Builder::new_multi_thread();
    let io = io
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build()?;
    let cpu = CpuRuntime::builder()
        .io_handle(io.handle().clone())
        .build()?;
    let lane = cpu.handle().clone();
    let bytes = match contender {
        "thread::spawn" => {
            let spawn = || thread::spawn(wait_on_the_thread);
            row(contender, THREADS, THREADS, spawn, |thread| {
                thread.join().unwrap()
            })
        }
        "spawn_blocking" => {
            let spawn = || io.spawn_blocking(wait_on_the_thread);
            row(contender, MILLION, BLOCKING_THREADS, spawn, |task| {
                io.block_on(task).unwrap()
            })
        }
        "twolane, spawn" => row(
            contender,
            MILLION,
            MILLION,
            || lane.spawn(wait()),
            |task| task.wait().unwrap(),
        ),
        _ => {
            let (spawn, threads) = (|| lane.spawn_cpu(wait_on_the_thread), lane.worker_threads());
            row(contender, MILLION, threads, spawn, |task| {
                task.wait().unwrap()
            })
        }
    }?;
    if contender.starts_with("twolane") && bytes.is_some_and(|bytes| bytes > BYTES_AT_MOST) {
        return Err(format!("{contender}: more than {BYTES_AT_MOST} bytes").into());
    }
    Ok(())
}

fn row<T>(
    contender: &str,
    units: usize,
    at_a_time: usize,
    spawn: impl Fn() -> T,
    end: impl Fn(T),
) -> Result<Option<usize>, Error> {
    let gate = GATE.write();
    let before = resident_kib();
    let handles: Vec<T> = (0..units).map(|_| spawn()).collect();
    // The system may have fewer threads: 10 seconds, then.
    for _ in 0..1_000 {
        if WAITING.load(Relaxed) < at_a_time {
            thread::sleep(Duration::from_millis(10));
        }
    }
    let waiting = WAITING.load(Relaxed);
    let bytes = resident_kib()
        .zip(before)
        .map(|(now, before)| (now - before) * 1024 / units);
    let shown = bytes.map_or("not known".into(), |bytes| bytes.to_string());
    println!("{contender:28}{units:>10}{waiting:>16}{shown:>12}");
    drop(gate);
    EVENT.close();
    handles.into_iter().for_each(end);
    if waiting < at_a_time && contender.starts_with("twolane") {
        return Err(format!("{contender}: only {waiting} wait at a time").into());
    }
    Ok(bytes)
}

fn resident_kib() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}
