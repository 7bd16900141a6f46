//! The helpers that programs have before they move in, by their callers' interface: a library's global
//! `spawn_cpu`, a search engine's pool, a router's compute jobs, a pool whose threads have state, a
//! database's runtime. (`executor`, `flagged` and `weighted` are three more.)

use std::cell::Cell;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, LazyLock, mpsc};

use futures::executor::block_on;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use twolane::{CpuRuntime, Handle, JobContext, JoinError, JoinErrorKind, Key, Priority, Task};

use crate::support::{Stuck, time_limit};

/// A library's: on any executor, for as long as the process lives. A panic goes on in the caller.
async fn spawn_cpu<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    static LANE: LazyLock<CpuRuntime> =
        LazyLock::new(|| CpuRuntime::builder().without_io().build().unwrap());
    let done = LANE.spawn_cpu(f).await;
    done.unwrap_or_else(|error| error.resume_unwind())
}

#[test]
fn a_library_s_global_works_under_any_executor() {
    let _limit = time_limit();
    assert_eq!(block_on(spawn_cpu(|| 1)), 1);
    for n in 0..3 {
        let runtime = Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(spawn_cpu(move || n)), n);
    }
    let panics = std::thread::spawn(|| block_on(spawn_cpu(|| panic!("planned"))));
    assert_eq!(panics.join().unwrap_err().downcast_ref(), Some(&"planned"));
    assert_eq!(block_on(spawn_cpu(|| 2)), 2);
}

fn lane(set: impl FnOnce(twolane::Builder) -> twolane::Builder) -> (CpuRuntime, Runtime) {
    let io = Runtime::new().unwrap();
    let lane = CpuRuntime::builder().io_handle(io.handle().clone());
    (set(lane.worker_threads(1)).build().unwrap(), io)
}

/// A search engine's: two kinds of jobs on the same threads, the urgent ones first.
struct Pool {
    urgent: Handle,
    normal: Handle,
}

impl Pool {
    fn new(cpu: &Handle) -> Self {
        Self {
            urgent: cpu.with_key(Key::new("urgent").with_weight(1_000)),
            normal: cpu.with_key(Key::new("normal")),
        }
    }
}

#[test]
fn urgent_jobs_pass_queued_ones_on_the_same_thread_and_who_is_gone_never_runs() {
    let _limit = time_limit();
    let (cpu, _io) = lane(|lane| lane);
    let pool = Pool::new(cpu.handle());
    let stuck = Stuck::<()>::start(&pool.normal);
    let (tell, order) = mpsc::channel();
    let submit = |to: &Handle, name| {
        let tell = tell.clone();
        to.spawn_cpu(move || tell.send(name).unwrap())
    };
    let first = submit(&pool.normal, "normal");
    let gone = submit(&pool.normal, "gone");
    let last = submit(&pool.normal, "last");
    let urgent = submit(&pool.urgent, "urgent");
    drop(gone);
    stuck.end();
    for task in [first, last, urgent] {
        task.wait().unwrap();
    }
    drop(tell);
    assert_eq!(
        order.iter().collect::<Vec<_>>(),
        ["urgent", "normal", "last"]
    );
}

/// A router's: refused at once if too many are there, and told if the request is gone.
fn execute<T: Send + 'static>(
    cpu: &Handle,
    f: impl FnOnce(&JobContext) -> Option<T> + Send + 'static,
) -> Result<Task<Option<T>>, JoinError> {
    let permit = cpu.try_reserve()?;
    Ok(permit.spawn_cpu_with(move |job| Ok(f(job))))
}

#[test]
fn a_compute_job_is_refused_at_once_and_learns_that_its_request_is_gone() {
    let _limit = time_limit();
    let (cpu, io) = lane(|lane| lane.queue_limit(Priority::Normal, 2));
    let (begins, begun) = mpsc::channel();
    let (ends, ended) = mpsc::channel();
    let asks = execute(cpu.handle(), move |job| {
        begins.send(()).unwrap();
        while job.checkpoint().is_ok() {
            std::thread::yield_now();
        }
        ends.send(()).unwrap();
        None::<u32>
    });
    let request = io.spawn(asks.unwrap());
    begun.recv().unwrap();
    let queued = execute(cpu.handle(), |_| Some(7)).unwrap();
    let refused = execute(cpu.handle(), |_| Some(8)).err().unwrap();
    assert_eq!(refused.kind(), JoinErrorKind::QueueFull);
    assert!(refused.is_unavailable());
    request.abort();
    ended.recv().unwrap();
    assert_eq!(io.block_on(queued).unwrap(), Some(7));
}

thread_local! {
    /// Stands for a virtual machine, which takes long to make.
    static STATE: Cell<Option<usize>> = const { Cell::new(None) };
}

#[test]
fn each_thread_of_a_pool_has_its_state_and_a_scope_borrows() {
    let _limit = time_limit();
    let (cpu, _io) = lane(|lane| lane.worker_threads(3));
    let pool = cpu.rayon_pool(Priority::Normal).unwrap();
    pool.broadcast(|thread| STATE.set(Some(thread.index())));
    for _ in 0..100 {
        assert!(cpu.spawn_cpu(|| STATE.get()).wait().unwrap().is_some());
    }
    let mut halves = [0, 0];
    let [left, right] = &mut halves;
    pool.in_place_scope(|scope| {
        scope.spawn(|_| *left = 1 + STATE.get().map_or(9, |_| 0));
        scope.spawn(|_| *right = 2);
    });
    assert_eq!(halves, [1, 2]);
    drop(pool);
    assert!(cpu.shutdown().wait().is_empty());
}

/// A database's: Tokio's own join handle, whose drop detaches.
fn spawn_compaction<T: Send + 'static>(
    cpu: &Handle,
    compaction: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let runtime = cpu.with_priority(Priority::Low).tokio_handle();
    runtime.expect("the lane is open").spawn(compaction)
}

#[test]
fn a_task_of_a_database_outlives_its_handle_and_its_parts_stay_with_it() {
    let _limit = time_limit();
    let (cpu, io) = lane(|lane| lane.thread_name("db"));
    let name = || std::thread::current().name().unwrap().to_owned();
    let parts = async move { (name(), tokio::spawn(async move { name() }).await.unwrap()) };
    let (own, part) = io.block_on(spawn_compaction(cpu.handle(), parts)).unwrap();
    assert_eq!(
        (own.as_str(), part.as_str()),
        ("db-low-tokio-0", "db-low-tokio-0")
    );
    let has_run = Arc::new(AtomicBool::new(false));
    let runs = has_run.clone();
    let (ends, ended) = mpsc::channel();
    drop(spawn_compaction(cpu.handle(), async move {
        tokio::task::yield_now().await;
        runs.store(true, SeqCst);
        ends.send(()).unwrap();
    }));
    ended.recv().unwrap();
    assert!(has_run.load(SeqCst));
}
