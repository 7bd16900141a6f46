//! The ways to have a closure run on other threads and to await what it returns.

use std::future::Future;
use std::sync::Arc;

use tokio::runtime::Runtime;
use twolane::{CpuRuntime, Niceness, Priority};

use twolane_benches::go::Go;
use twolane_benches::{Contender, bounded_runtime, cores, io_runtime};

use crate::measure::Measured;

/// One of the ways. The job is submitted by the call, not by the first poll.
pub trait Offload: Clone + Send + Sync + 'static {
    /// `is_urgent`: it is to pass the others, where there is a way.
    fn offload<F, T>(
        &self,
        is_urgent: bool,
        job: F,
    ) -> impl Future<Output = T> + Send + use<Self, F, T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static;
}

pub const BASELINE: &str = "nothing, the gap alone";
pub const HIGH: &str = "twolane spawn_cpu, High";
pub const UNWEIGHTED: &str = "twolane spawn_cpu, no weights";
pub const TOKIO_SPAWN: &str = "tokio::spawn";
pub const GOROUTINES: &str = "goroutine + channel";

/// All of them; `less` divides how often a turn measures each case.
pub fn all(less: u64) -> Vec<Contender<'static>> {
    let io = Arc::new(bounded_runtime(2));
    let lane = |niceness| {
        let builder = CpuRuntime::builder().niceness(niceness);
        let builder = builder.io_handle(io.handle().clone());
        // For the process's whole life, as the peers' pools.
        Box::leak(Box::new(builder.build().unwrap()))
            .handle()
            .clone()
    };
    let weighted = lane(Niceness::default());
    let unweighted = lane(Niceness::off());
    let second = Arc::new(io_runtime(cores()));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(cores());
    let pool = Arc::new(pool.build().unwrap());
    let measured = Measured { io, less };
    vec![
        measured.contender("twolane spawn_cpu", Closure(weighted.clone())),
        measured.contender("twolane spawn", Future_(weighted.clone())),
        measured.contender(UNWEIGHTED, Closure(unweighted)),
        measured.contender(HIGH, High(weighted)),
        measured.contender("tokio_rayon", TokioRayon(pool.clone())),
        measured.contender("rayon + oneshot", RayonOneshot(pool.clone())),
        measured.contender("rayon + async-task", RayonAsyncTask(pool)),
        measured.contender("spawn_blocking", SpawnBlocking),
        measured.contender("second runtime", SecondRuntime(second)),
        measured.contender(TOKIO_SPAWN, TokioSpawn),
        measured.contender(BASELINE, Nothing),
        goroutines(less),
    ]
}

fn goroutines(less: u64) -> Contender<'static> {
    let go = Go::new("offload");
    let args = [
        ("hot", 5_000),
        ("cold", 100),
        ("busy", 100),
        ("batch", 50_000),
        ("small-batches", 200),
    ];
    let args = args.map(|(name, n)| format!("-{name}={}", (n / less).max(2)));
    Contender::new(GOROUTINES, move || go.figures(&args, "ns"))
}

/// Most know no priorities.
macro_rules! offload {
    ($way:ty, |$this:ident, $job:ident| $body:block) => {
        offload!($way, |$this, _is_urgent, $job| $body);
    };
    ($way:ty, |$this:ident, $is_urgent:ident, $job:ident| $body:block) => {
        impl Offload for $way {
            fn offload<F, T>(
                &self,
                $is_urgent: bool,
                $job: F,
            ) -> impl Future<Output = T> + Send + use<F, T>
            where
                F: FnOnce() -> T + Send + 'static,
                T: Send + 'static,
            {
                let $this = self;
                $body
            }
        }
    };
}

#[derive(Clone)]
struct Closure(twolane::Handle);

offload!(Closure, |way, job| {
    let task = way.0.spawn_cpu(job);
    async move { task.await.unwrap() }
});

#[derive(Clone)]
struct Future_(twolane::Handle);

offload!(Future_, |way, job| {
    let task = way.0.spawn(async move { job() });
    async move { task.await.unwrap() }
});

/// The load is Normal, what passes it is High.
#[derive(Clone)]
struct High(twolane::Handle);

offload!(High, |way, is_urgent, job| {
    let task = match is_urgent {
        true => way.0.with_priority(Priority::High).spawn_cpu(job),
        false => way.0.spawn_cpu(job),
    };
    async move { task.await.unwrap() }
});

#[derive(Clone)]
struct TokioRayon(Arc<rayon::ThreadPool>);

offload!(TokioRayon, |way, job| {
    use tokio_rayon::AsyncThreadPool;
    way.0.spawn_async(job)
});

#[derive(Clone)]
struct RayonOneshot(Arc<rayon::ThreadPool>);

offload!(RayonOneshot, |way, job| {
    let (done, output) = tokio::sync::oneshot::channel();
    way.0.spawn(move || drop(done.send(job())));
    async move { output.await.unwrap() }
});

#[derive(Clone)]
struct RayonAsyncTask(Arc<rayon::ThreadPool>);

offload!(RayonAsyncTask, |way, job| {
    let pool = way.0.clone();
    let schedule = move |runnable: async_task::Runnable| {
        pool.spawn(move || {
            runnable.run();
        });
    };
    let (runnable, task) = async_task::spawn(async move { job() }, schedule);
    runnable.schedule();
    task
});

#[derive(Clone)]
struct SpawnBlocking;

offload!(SpawnBlocking, |_way, job| {
    let task = tokio::task::spawn_blocking(job);
    async move { task.await.unwrap() }
});

#[derive(Clone)]
struct SecondRuntime(Arc<Runtime>);

offload!(SecondRuntime, |way, job| {
    let task = way.0.spawn(async move { job() });
    async move { task.await.unwrap() }
});

#[derive(Clone)]
struct TokioSpawn;

offload!(TokioSpawn, |_way, job| {
    let task = tokio::spawn(async move { job() });
    async move { task.await.unwrap() }
});

#[derive(Clone)]
struct Nothing;

offload!(Nothing, |_way, job| { std::future::ready(job()) });
