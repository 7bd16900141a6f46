//! sqlx's pool of connections to PostgreSQL.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, channel::mpsc};
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection, PgConnection, PgPool};
use twolane::{HandleExt, spawn_io};

use super::Shows::{JobPanics, Stalls};
use super::build::{Rows, ask};
use super::{Answer, Ask, Client, Mark, World, computed};
use crate::BoxError;
use crate::clock::Work;
use crate::lanes::Cpu;
use crate::servers::Kind;
use crate::sql::{INSERT, NOW, ROWS, TABLE};
use crate::ways::{sqlx_owned, sqlx_query, sqlx_rows, sqlx_shared, sqlx_transaction};

const CONNECTIONS: u32 = 5;
/// For each of eight rows.
const OF_A_ROW: Duration = Duration::from_millis(25);
/// For each of two statements.
const OF_A_STATEMENT: Duration = Duration::from_millis(100);

/// Without a connection yet.
pub async fn pool(world: World) -> Result<PgPool, BoxError> {
    let url = format!("postgres://twolane@{}/postgres", world.address);
    // By a connection of its own: the pool is to be cold.
    let mut other = PgConnection::connect(&url).await?;
    sqlx::query(TABLE).execute(&mut other).await?;
    other.close().await?;
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS);
    Ok(pool.connect_lazy(&url)?)
}

async fn plain(pool: PgPool) -> Result<i64, BoxError> {
    Ok(sqlx::query_scalar(NOW).fetch_one(&pool).await?)
}

fn request(pool: PgPool) -> Ask {
    ask(pool, plain)
}

/// All on the I/O lane but one thing: the job drops the pooled connection.
async fn dropped_in_the_job(pool: PgPool) -> Result<i64, BoxError> {
    let mut connection = spawn_io(async move { pool.acquire().await }).await??;
    let (answer, connection) = spawn_io(async move {
        let answer = sqlx::query_scalar(NOW).fetch_one(&mut *connection).await;
        (answer, connection)
    })
    .await?;
    drop(connection);
    Ok(answer?)
}

pub(super) fn queries() -> Client {
    Rows::new("sqlx", Some(Kind::Postgres), pool, request)
        .warned("plain", Stalls, |pool, _| plain(pool))
        .warned_in_cpu_context(JobPanics, |pool, _| plain(pool))
        .warned(
            "spawn_io for each await, drop in the job",
            Stalls,
            |pool, _| dropped_in_the_job(pool),
        )
        .recommended("whole query in one spawn_io", |pool, _| async move {
            sqlx_query::time(&pool).await
        })
        .way(
            "IoShared",
            Mark::Recommended,
            |pool, cpu| cpu.io_owned(pool).shared(),
            |pool, _| async move { sqlx_shared::time(&pool).await },
        )
        .done()
}

async fn rows_plainly(pool: PgPool, work: Work) -> Result<Answer, BoxError> {
    let mut rows = sqlx::query_scalar::<_, i64>(ROWS).fetch(&pool);
    while rows.try_next().await?.is_some() {
        work.of(OF_A_ROW);
    }
    Ok(computed(None))
}

async fn rows_by_hand(pool: PgPool, cpu: Cpu, work: Work) -> Result<Answer, BoxError> {
    let (sender, mut rows) = mpsc::channel(1024);
    let read = cpu.io().spawn(async move {
        let rows = sqlx::query_scalar::<_, i64>(ROWS).fetch(&pool);
        // An error of the channel is a job that has gone.
        rows.map(Ok).forward(sender).await
    });
    while let Some(row) = rows.next().await {
        row?;
        work.of(OF_A_ROW);
    }
    read.await??;
    Ok(computed(None))
}

pub(super) fn rows() -> Client {
    Rows::new("sqlx, rows", Some(Kind::Postgres), pool, request)
        .on_two(|pool, _, work| rows_plainly(pool, work), rows_by_hand)
        .warned("plain", Stalls, rows_plainly)
        .recommended("IoOwned::into_stream", |pool, work| async move {
            let mut rows = sqlx_rows::times(&pool);
            while let Some(row) = rows.try_next().await? {
                row?;
                work.of(OF_A_ROW);
            }
            Ok(computed(None))
        })
        .done()
}

fn a_sum(work: &Work) -> i64 {
    work.of(OF_A_STATEMENT);
    7
}

async fn transaction(pool: PgPool, sums: Vec<i64>) -> Result<(), BoxError> {
    let mut transaction = pool.begin().await?;
    for sum in sums {
        let insert = sqlx::query(INSERT).bind(sum);
        insert.execute(&mut *transaction).await?;
    }
    Ok(transaction.commit().await?)
}

/// It computes between the statements.
async fn transaction_plainly(pool: PgPool, work: Work) -> Result<Answer, BoxError> {
    let mut transaction = pool.begin().await?;
    for _ in 0..2 {
        let insert = sqlx::query(INSERT).bind(a_sum(&work));
        insert.execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    Ok(computed(None))
}

async fn transaction_by_hand(pool: PgPool, cpu: Cpu, work: Work) -> Result<Answer, BoxError> {
    let sums = vec![a_sum(&work), a_sum(&work)];
    cpu.io().spawn(transaction(pool, sums)).await??;
    Ok(computed(None))
}

async fn computing_inside(pool: PgPool, work: Work) -> Result<Answer, BoxError> {
    sqlx_owned::insert(&pool, || a_sum(&work)).await?;
    Ok(computed(None))
}

pub(super) fn transactions() -> Client {
    Rows::new("sqlx, transaction", Some(Kind::Postgres), pool, request)
        .on_two(
            |pool, _, work| transaction_plainly(pool, work),
            transaction_by_hand,
        )
        .warned("plain", Stalls, transaction_plainly)
        .warned("IoOwned, the I/O side's pool", Stalls, computing_inside)
        .recommended("whole in one spawn_io", |pool, work| async move {
            sqlx_transaction::insert(&pool, vec![a_sum(&work), a_sum(&work)]).await?;
            Ok(computed(None))
        })
        .way(
            "IoOwned, a pool for jobs",
            Mark::Recommended,
            |pool, _| {
                let own = PgPoolOptions::new().max_connections(CONNECTIONS);
                own.connect_lazy_with((*pool.connect_options()).clone())
            },
            computing_inside,
        )
        .done()
}
