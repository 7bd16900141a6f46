//! The contenders: each way, measured.

use std::sync::Arc;

use twolane::Niceness;
use twolane_benches::go::Go;
use twolane_benches::{Contender, bounded_runtime, cores, io_runtime, lane};

use crate::measure::Measured;
use crate::ways::{
    BASELINE, Closure, Future_, HIGH, High, Nothing, RayonAsyncTask, RayonOneshot, SecondRuntime,
    SpawnBlocking, TOKIO_SPAWN, TokioRayon, TokioSpawn, UNWEIGHTED,
};

pub const GOROUTINES: &str = "goroutine + channel";

/// All of them; `less` divides how often a turn measures each case.
pub fn all(less: u64) -> Vec<Contender<'static>> {
    let io = Arc::new(bounded_runtime(2));
    let handle = |niceness| {
        let cpu = lane(io.handle(), |lane| lane.niceness(niceness));
        // For the process's whole life, as the peers' pools.
        Box::leak(Box::new(cpu)).handle().clone()
    };
    let weighted = handle(Niceness::default());
    let unweighted = handle(Niceness::off());
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
    ];
    let args = args.map(|(name, n)| format!("-{name}={}", (n / less).max(2)));
    Contender::new(GOROUTINES, move || go.figures(&args, "ns"))
}
