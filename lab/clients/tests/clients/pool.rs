//! A pool of 5 connections is whole after 1,000 jobs that ended at random.

use std::panic::resume_unwind;
use std::time::Duration;

use futures::TryStreamExt;
use futures::future::join_all;
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::runtime::Runtime;
use tokio::task::yield_now;
use twolane::{CpuRuntime, HandleExt, Task};
use twolane_clients::servers::Kind;
use twolane_clients::ways::{sqlx_owned, sqlx_query, sqlx_rows, sqlx_shared, sqlx_transaction};
use twolane_clients::{BoxError, sql};

use crate::dice::Dice;
use crate::servers::server;
use crate::support::{Lanes, cpu_lane, lanes};

const CONNECTIONS: u32 = 5;
const JOBS: usize = 1_000;
/// Submitted at once.
const CROWD: usize = 50;

type JobTask = Task<Result<(), BoxError>>;

#[test]
fn all_connections_come_back() {
    let mut dice = Dice::from_environment();
    let Lanes { cpu, io } = lanes(2);
    let pool = io.block_on(pool());
    io.block_on(cpu.shutdown());
    let mut ended = [0; 4];
    for _ in 0..JOBS / CROWD {
        let cpu = cpu_lane(2, io.handle());
        let handle = cpu.handle().clone();
        let tasks = crowd(&mut dice, &cpu, &io, &pool);
        let left = handle.metrics().suspended + handle.metrics().queued;
        end(&mut dice, cpu, &io);
        drop(tasks);
        let jobs = handle.metrics();
        let counts = [jobs.completed, jobs.panicked, jobs.cancelled, left];
        ended
            .iter_mut()
            .zip(counts)
            .for_each(|(all, more)| *all += more);
    }
    eprintln!("completed, panicked, cancelled, left at the lane's end: {ended:?}");
    assert!(ended.iter().all(|&jobs| jobs > 0), "all kinds of ends");
    io.block_on(is_whole(&pool));
}

/// Tells its connections to the server apart from those of others.
const NAME: &str = "pool";

async fn pool() -> PgPool {
    let url = format!(
        "postgres://twolane@{}/postgres",
        server(Kind::Postgres).address()
    );
    let options: PgConnectOptions = url.parse().unwrap();
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS)
        // Longer than a test may take: to wait in vain is a failure.
        .acquire_timeout(Duration::from_secs(600))
        .connect_with(options.application_name(NAME))
        .await
        .unwrap();
    sqlx::query(sql::TABLE).execute(&pool).await.unwrap();
    pool
}

/// Jobs of all kinds, some of which are awaited and some cancelled after a while. The
/// tasks of the others are returned.
fn crowd(dice: &mut Dice, cpu: &CpuRuntime, io: &Runtime, pool: &PgPool) -> Vec<JobTask> {
    let jobs = (0..CROWD).map(|_| cpu.spawn(job(dice.below(5), dice.below(4), pool.clone())));
    let mut tasks: Vec<JobTask> = jobs.collect();
    io.block_on(async {
        for task in tasks.drain(..dice.below(CROWD as u64) as usize) {
            match dice.below(4) {
                0 => drop(task.await),
                1 => task.detach(),
                _ => {
                    for _ in 0..dice.below(200) {
                        yield_now().await;
                    }
                    drop(task);
                }
            }
        }
    });
    tasks
}

/// Uses a connection, and maybe panics at that.
async fn job(kind: u64, panics: u64, pool: PgPool) -> Result<(), BoxError> {
    match kind {
        0 => drop(sqlx_query::time(&pool).await?),
        1 => {
            let pool = twolane::Handle::current().io_owned(pool).shared();
            sqlx_shared::time(&pool).await?;
        }
        2 => sqlx_transaction::insert(&pool, vec![1, 2]).await?,
        // Inside a transaction.
        3 => {
            let mut step = 0;
            let compute = std::sync::Mutex::new(move || {
                step += 1;
                panic_unless(step <= panics);
                7
            });
            sqlx_owned::insert(&pool, || (compute.lock().unwrap())()).await?;
        }
        // Of which some are not read.
        _ => {
            let mut rows = sqlx_rows::times(&pool);
            for _ in 0..panics {
                rows.try_next().await?.transpose()?;
            }
        }
    }
    panic_unless(panics > 0);
    Ok(())
}

/// Without a message: there are hundreds.
fn panic_unless(well: bool) {
    if !well {
        resume_unwind(Box::new("on purpose"));
    }
}

/// In one of the ways in which a lane can end, with jobs left or not.
fn end(dice: &mut Dice, cpu: CpuRuntime, io: &Runtime) {
    match dice.below(4) {
        0 => drop(io.block_on(cpu.shutdown())),
        1 => drop(io.block_on(cpu.shutdown_timeout(Duration::ZERO))),
        2 => cpu.shutdown_background(),
        _ => drop(cpu),
    }
}

/// All five can be had at once, and the server knows of no more, and of nothing begun.
async fn is_whole(pool: &PgPool) {
    let all = join_all((0..CONNECTIONS).map(|_| pool.acquire())).await;
    let all: Vec<_> = all.into_iter().map(Result::unwrap).collect();
    // Not `num_idle`: sqlx counts a connection on after another thread may have taken it, so
    // for a moment the number is below zero.
    assert_eq!(pool.size(), CONNECTIONS);
    drop(all);
    // They go back by tasks, and the server ends those that the pool has closed when it
    // reads so.
    let count = "SELECT count(*), count(*) FILTER (WHERE state = 'idle') FROM pg_stat_activity \
                 WHERE application_name = $1";
    let asking = 1;
    loop {
        let mut connection = pool.acquire().await.unwrap();
        let query = sqlx::query_as(count).bind(NAME);
        let (all, idle): (i64, i64) = query.fetch_one(&mut *connection).await.unwrap();
        drop(connection);
        if (all, idle) == (CONNECTIONS.into(), i64::from(CONNECTIONS) - asking)
            && pool.num_idle() == CONNECTIONS as usize
        {
            return;
        }
        yield_now().await;
    }
}
