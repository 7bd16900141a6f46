//! A contender's process: `/health` on the I/O runtime, and the queries.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use tokio::net::TcpListener;
use twolane::Priority;
use twolane_benches::cpu_time;
use twolane_tpch::queries;

use crate::contender::Engine;
use crate::process::{Answer, Role, Work};
use crate::tables;

/// Of the I/O runtime's threads.
const IO: &str = "io";

pub fn run(role: Role) -> ! {
    let mut io = tokio::runtime::Builder::new_multi_thread();
    let io = io
        .thread_name(IO)
        .enable_all()
        .build()
        .expect("an I/O runtime");
    let answer = io.block_on(io.spawn(serve(role))).expect("no panic");
    let answer = answer.expect("all queries succeed");
    println!("{}", serde_json::to_string(&answer).expect("JSON"));
    // The client still has to stop.
    let _ = std::io::stdin().lines().next();
    std::process::exit(0)
}

async fn serve(role: Role) -> Result<Answer> {
    let io = tokio::runtime::Handle::current();
    // It ends with the process.
    let engine: &Engine = Box::leak(Box::new(Engine::start(role.contender, &io)));
    let config = SessionConfig::new().with_target_partitions(twolane_benches::cores());
    let context = SessionContext::new_with_config(config);
    tables::register(&context, &role, engine, &io).await?;
    // Caches are warm afterwards.
    let mut rows = Vec::new();
    for query in queries::all() {
        let batches = engine.query(&context, query, Priority::Normal).await?;
        rows.push(queries::rows(&batches)?);
    }

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let health = Router::new().route("/health", get(async || "ok"));
    tokio::spawn(async move { axum::serve(listener, health).await });
    println!("{address}");
    std::io::stdout().flush()?;
    let wait_for_client = || std::io::stdin().lock().read_line(&mut String::new());
    tokio::task::spawn_blocking(wait_for_client)
        .await
        .expect("no panic")?;

    let before = (io_threads(), cpu_time::of_process());
    let seconds = match role.work {
        Work::Queries { passes } => in_pairs(engine, &context, passes).await?,
        Work::Priorities { times } => priorities(engine, &context, times).await?,
    };
    let (io_cpu, all) = (io_threads() - before.0, cpu_time::of_process() - before.1);
    let io_cpu = io_cpu.as_secs_f64() / all.as_secs_f64();
    Ok(Answer {
        seconds,
        io_cpu,
        rows,
    })
}

async fn in_pairs(engine: &Engine, context: &SessionContext, passes: usize) -> Result<Vec<f64>> {
    let mut seconds = vec![0.0; queries::all().len()];
    for _ in 0..passes {
        for (query, seconds) in queries::all().into_iter().zip(&mut seconds) {
            let begin = Instant::now();
            let copy = || engine.query(context, query, Priority::Normal);
            tokio::try_join!(copy(), copy())?;
            *seconds += begin.elapsed().as_secs_f64() / passes as f64;
        }
    }
    Ok(seconds)
}

/// The time of each query beside four at `Low`, over its time alone.
async fn priorities(
    engine: &'static Engine,
    context: &SessionContext,
    times: usize,
) -> Result<Vec<f64>> {
    let mut ratios = Vec::new();
    for query in queries::all() {
        let (mut alone, mut beside) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..times {
            alone += at_high(engine, context, query).await?;
            let is_over = Arc::new(AtomicBool::new(false));
            let low = [(); 4].map(|()| {
                let (context, is_over) = (context.clone(), is_over.clone());
                tokio::spawn(async move {
                    while !is_over.load(SeqCst) {
                        engine.query(&context, query, Priority::Low).await?;
                    }
                    Ok::<_, datafusion::error::DataFusionError>(())
                })
            });
            // They run by then.
            at_high(engine, context, query).await?;
            beside += at_high(engine, context, query).await?;
            is_over.store(true, SeqCst);
            for low in low {
                low.await.expect("no panic")?;
            }
        }
        ratios.push(beside.as_secs_f64() / alone.as_secs_f64());
    }
    Ok(ratios)
}

async fn at_high(engine: &Engine, context: &SessionContext, query: &str) -> Result<Duration> {
    let begin = Instant::now();
    engine.query(context, query, Priority::High).await?;
    Ok(begin.elapsed())
}

/// The CPU time of the I/O runtime's threads.
fn io_threads() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let of = |task: std::fs::DirEntry| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let times = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        let nanos = times.split_whitespace().next()?.parse().ok()?;
        (name.trim() == IO).then_some(Duration::from_nanos(nanos))
    };
    tasks.filter_map(of).sum()
}
