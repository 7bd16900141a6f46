//! What is counted: each piece of work, by each contender, so many turns of it.

use std::future::{Future, poll_fn};
use std::sync::mpsc;
use std::task::Poll;

use futures::executor::block_on;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_rayon::AsyncThreadPool;
use twolane::watch::Watch;
use twolane::{CpuRuntime, Key, Niceness};

/// How many jobs are submitted before the first one is run.
const BATCH: u64 = 1_000;

/// A closure that keeps the only thread until the other end is dropped. So what follows is
/// counted without the wake-ups of threads, whose number is chance.
fn gate() -> (mpsc::Sender<()>, impl FnOnce() + Send + 'static) {
    let (open, wait) = mpsc::channel::<()>();
    (open, move || _ = wait.recv())
}

/// Submits batches, and awaits the last job of each first: then all have ended.
fn batches<T: Future + Unpin>(
    turns: u64,
    close: impl Fn() -> mpsc::Sender<()>,
    submit: impl Fn(u64) -> T,
    wait: impl Fn(T),
) {
    for _ in 0..turns / BATCH {
        let open = close();
        let mut tasks: Vec<T> = (0..BATCH).map(&submit).collect();
        drop(open);
        while let Some(task) = tasks.pop() {
            wait(task);
        }
    }
}

fn wakes_itself(turns: u64) -> impl Future<Output = ()> + Send + 'static {
    let mut left = turns;
    poll_fn(move |cx| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

/// One of two that wait for each other, once in a turn.
async fn plays(begins: bool, turns: u64, send: Sender<()>, mut receive: Receiver<()>) {
    for _ in 0..turns {
        if begins {
            send.send(()).await.unwrap();
            receive.recv().await.unwrap();
        } else {
            receive.recv().await.unwrap();
            send.send(()).await.unwrap();
        }
    }
}

fn players(turns: u64) -> [impl Future<Output = ()> + Send + 'static; 2] {
    let ((there, from_there), (back, from_back)) = (channel(1), channel(1));
    [
        plays(true, turns, there, from_back),
        plays(false, turns, back, from_there),
    ]
}

/// `None`: there is no such contender.
pub fn run(side: &str, row: &str, turns: u64) -> Option<()> {
    match (side, row) {
        ("peer", row) => return peer(row, turns),
        // While the I/O lane is watched; with a subscriber, in a span.
        ("watched" | "traced", "wakes itself" | "closures") | ("twolane", _) => {}
        _ => return None,
    }
    on_lane(side, row, turns);
    Some(())
}

fn on_lane(side: &str, row: &str, turns: u64) {
    let io = Builder::new_current_thread().enable_all().build().unwrap();
    if side == "traced" {
        tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap();
    }
    let _span = (side == "traced").then(|| tracing::info_span!("request").entered());
    // The threads that look at the kernel would be counted.
    giveway::tick_each(None).unwrap();
    let mut lane = CpuRuntime::builder().worker_threads(1);
    if side == "watched" {
        lane = lane.watch_io(Watch::new());
    }
    let lane = lane
        .io_handle(io.handle().clone())
        .niceness(Niceness::off());
    let cpu = lane.build().unwrap();
    let close = || {
        let (open, gate) = gate();
        cpu.spawn_cpu(gate).detach();
        open
    };
    match row {
        "closures" => {
            let submit = |n| cpu.spawn_cpu(move || n);
            batches(turns, close, submit, |task| _ = task.wait().unwrap());
        }
        "keys" => {
            let key = |name| cpu.handle().with_key(Key::new(name).with_max_jobs(2_000));
            let keys = ["a", "b"].map(key);
            let submit = |n: u64| keys[n as usize % 2].spawn_cpu(move || n);
            batches(turns, close, submit, |task| _ = task.wait().unwrap());
        }
        "futures" => {
            let submit = |n| cpu.spawn(async move { n });
            batches(turns, close, submit, |task| _ = task.wait().unwrap());
        }
        "one by one" => (0..turns).for_each(|n| _ = cpu.spawn_cpu(move || n).wait().unwrap()),
        "wakes itself" => cpu.spawn(wakes_itself(turns)).wait().unwrap(),
        "channels" => {
            let tasks = players(turns).map(|player| cpu.spawn(player));
            tasks.into_iter().for_each(|task| task.wait().unwrap());
        }
        "yields" => {
            let job = async move {
                for _ in 0..turns {
                    twolane::yield_now().await;
                }
            };
            cpu.spawn(job).wait().unwrap();
        }
        _ => {
            let handle = cpu.handle().clone();
            let job = async move {
                for _ in 0..turns {
                    handle.spawn_io(async {}).await.unwrap();
                }
            };
            io.block_on(cpu.spawn(job)).unwrap();
        }
    }
}

fn tokio(workers: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).build().unwrap()
}

fn peer(row: &str, turns: u64) -> Option<()> {
    let rayon = || {
        rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .unwrap()
    };
    match row {
        "keys" => return None,
        "closures" => {
            let pool = rayon();
            let close = || {
                let (open, gate) = gate();
                pool.spawn_fifo(gate);
                open
            };
            let submit = |n| pool.spawn_fifo_async(move || n);
            batches(turns, close, submit, |task| _ = block_on(task));
        }
        "one by one" => {
            let pool = rayon();
            for n in 0..turns {
                block_on(pool.spawn_fifo_async(move || n));
            }
        }
        "futures" => {
            let io = tokio(1);
            let close = || {
                let (open, gate) = gate();
                drop(io.spawn(async { gate() }));
                open
            };
            let submit = |n| io.spawn(async move { n });
            batches(turns, close, submit, |task| _ = block_on(task).unwrap());
        }
        "wakes itself" => {
            let io = tokio(1);
            let task = io.spawn(tokio::task::coop::unconstrained(wakes_itself(turns)));
            block_on(task).unwrap();
        }
        "channels" => {
            let io = tokio(1);
            let tasks = players(turns).map(|player| io.spawn(player));
            tasks.into_iter().for_each(|task| block_on(task).unwrap());
        }
        "yields" => {
            let task = async move {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
            };
            block_on(tokio(1).spawn(task)).unwrap();
        }
        // From a job, by hand: the same two threads.
        _ => {
            let io = Builder::new_current_thread().build().unwrap();
            let lane = CpuRuntime::builder()
                .worker_threads(1)
                .niceness(Niceness::off());
            let cpu = lane.io_handle(io.handle().clone()).build().unwrap();
            let handle = io.handle().clone();
            let job = async move {
                for _ in 0..turns {
                    handle.spawn(async {}).await.unwrap();
                }
            };
            io.block_on(cpu.spawn(job)).unwrap();
        }
    }
    Some(())
}
