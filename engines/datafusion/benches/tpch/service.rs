//! A contender's process: `/health` on the I/O runtime, and the queries.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use datafusion::arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::{SessionConfig, SessionContext};
use tokio::net::TcpListener;
use twolane::Priority;
use twolane_benches::{child, cpu_time};
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
    // The client may still wait for a last answer, so the bench ends this process, not its work.
    loop {
        std::thread::park();
    }
}

async fn serve(role: Role) -> Result<Answer> {
    let io = tokio::runtime::Handle::current();
    // It ends with the process.
    let engine: &Engine = Box::leak(Box::new(Engine::start(role.contender, &io)));
    let config = SessionConfig::new().with_target_partitions(twolane_benches::cores());
    let context = SessionContext::new_with_config(config);
    tables::register(&context, &role, engine, &io).await?;
    // Caches are warm afterwards.
    let mut results = Results::default();
    for (nth, query) in queries::all().into_iter().enumerate() {
        let batches = engine.query(&context, query, Priority::Normal).await?;
        results.push((nth, batches));
    }

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let health = Router::new().route("/health", get(async || "ok"));
    tokio::spawn(async move { axum::serve(listener, health).await });
    println!("{address}");
    std::io::stdout().flush()?;
    tokio::task::spawn_blocking(wait_for_client)
        .await
        .expect("no panic");

    let before = (io_threads(), cpu_time::of_process());
    let seconds = match role.work {
        Work::Queries { passes } => in_pairs(engine, &context, passes, &mut results).await?,
        Work::Priorities { times } => priorities(engine, &context, times, &mut results).await?,
    };
    let (io_cpu, all) = (io_threads() - before.0, cpu_time::of_process() - before.1);
    let io_cpu = io_cpu.as_secs_f64() / all.as_secs_f64();
    // The client stops.
    println!();
    std::io::stdout().flush()?;
    Ok(Answer {
        seconds,
        io_cpu,
        unequal: unequal(&results, &role.plain)?,
    })
}

/// Returns when the bench asks for `/health`.
fn wait_for_client() {
    if std::io::stdin().lines().next().is_none() {
        std::process::exit(0);
    }
    child::end_with_parent();
}

/// Of which query, and its batches.
type Results = Vec<(usize, Vec<RecordBatch>)>;

/// The numbers of the queries that had another result than plain DataFusion's, at least once.
fn unequal(results: &Results, plain: &[u64]) -> Result<BTreeSet<usize>> {
    let mut unequal = BTreeSet::new();
    for (nth, batches) in results {
        if queries::digest(batches)? != plain[*nth] {
            unequal.insert(nth + 1);
        }
    }
    Ok(unequal)
}

async fn in_pairs(
    engine: &Engine,
    context: &SessionContext,
    passes: usize,
    results: &mut Results,
) -> Result<Vec<f64>> {
    let mut seconds = vec![0.0; queries::all().len()];
    for _ in 0..passes {
        for (nth, query) in queries::all().into_iter().enumerate() {
            let begin = Instant::now();
            let copy = || engine.query(context, query, Priority::Normal);
            let (one, two) = tokio::try_join!(copy(), copy())?;
            seconds[nth] += begin.elapsed().as_secs_f64() / passes as f64;
            results.extend([(nth, one), (nth, two)]);
        }
    }
    Ok(seconds)
}

/// The time of each query beside four at `Low`, over its time alone.
async fn priorities(
    engine: &'static Engine,
    context: &SessionContext,
    times: usize,
    results: &mut Results,
) -> Result<Vec<f64>> {
    let mut ratios = Vec::new();
    for (nth, query) in queries::all().into_iter().enumerate() {
        let (mut alone, mut beside) = (Duration::ZERO, Duration::ZERO);
        let mut at_high = async || {
            let begin = Instant::now();
            let batches = engine.query(context, query, Priority::High).await?;
            results.push((nth, batches));
            Ok::<_, DataFusionError>(begin.elapsed())
        };
        for _ in 0..times {
            alone += at_high().await?;
            let is_over = Arc::new(AtomicBool::new(false));
            let low = [(); 4].map(|()| {
                let (context, is_over) = (context.clone(), is_over.clone());
                tokio::spawn(async move {
                    while !is_over.load(SeqCst) {
                        engine.query(&context, query, Priority::Low).await?;
                    }
                    Ok::<_, DataFusionError>(())
                })
            });
            while engine.running(Priority::Low) < low.len() as u64 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            beside += at_high().await?;
            is_over.store(true, SeqCst);
            for low in low {
                low.await.expect("no panic")?;
            }
        }
        ratios.push(beside.as_secs_f64() / alone.as_secs_f64());
    }
    Ok(ratios)
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
