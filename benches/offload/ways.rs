//! The ways to have a closure run on other threads and to await what it returns.

use std::future::Future;
use std::sync::Arc;

use tokio::runtime::Runtime;
use twolane::Priority;

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
pub struct Closure(pub twolane::Handle);

offload!(Closure, |way, job| {
    let task = way.0.spawn_cpu(job);
    async move { task.await.unwrap() }
});

#[derive(Clone)]
pub struct Future_(pub twolane::Handle);

offload!(Future_, |way, job| {
    let task = way.0.spawn(async move { job() });
    async move { task.await.unwrap() }
});

/// The load is Normal, what passes it is High.
#[derive(Clone)]
pub struct High(pub twolane::Handle);

offload!(High, |way, is_urgent, job| {
    let task = match is_urgent {
        true => way.0.with_priority(Priority::High).spawn_cpu(job),
        false => way.0.spawn_cpu(job),
    };
    async move { task.await.unwrap() }
});

#[derive(Clone)]
pub struct TokioRayon(pub Arc<rayon::ThreadPool>);

offload!(TokioRayon, |way, job| {
    use tokio_rayon::AsyncThreadPool;
    way.0.spawn_async(job)
});

#[derive(Clone)]
pub struct RayonOneshot(pub Arc<rayon::ThreadPool>);

offload!(RayonOneshot, |way, job| {
    let (done, output) = tokio::sync::oneshot::channel();
    way.0.spawn(move || drop(done.send(job())));
    async move { output.await.unwrap() }
});

#[derive(Clone)]
pub struct RayonAsyncTask(pub Arc<rayon::ThreadPool>);

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
pub struct SpawnBlocking;

offload!(SpawnBlocking, |_way, job| {
    let task = tokio::task::spawn_blocking(job);
    async move { task.await.unwrap() }
});

#[derive(Clone)]
pub struct SecondRuntime(pub Arc<Runtime>);

offload!(SecondRuntime, |way, job| {
    let task = way.0.spawn(async move { job() });
    async move { task.await.unwrap() }
});

#[derive(Clone)]
pub struct TokioSpawn;

offload!(TokioSpawn, |_way, job| {
    let task = tokio::spawn(async move { job() });
    async move { task.await.unwrap() }
});

#[derive(Clone)]
pub struct Nothing;

offload!(Nothing, |_way, job| { std::future::ready(job()) });
