//! tokio-postgres: one connection for all.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryFutureExt, TryStreamExt, channel::mpsc};
use tokio_postgres::Client as Postgres;

use super::Shows::Stalls;
use super::build::{Rows, ask};
use super::{Answer, Ask, Client, World, computed};
use crate::BoxError;
use crate::clock::Work;
use crate::lanes::Cpu;
use crate::servers::Kind;
use crate::sql::{MANY_ROWS, NOW};
use crate::ways::tokio_postgres as ways;

/// A job computes eight times for so long while it reads.
const AT_TIMES: Duration = Duration::from_millis(25);
const ROWS_BETWEEN: usize = 1_250;

async fn connect(world: World) -> Result<Arc<Postgres>, BoxError> {
    ways::connect(&format!("postgres://twolane@{}/postgres", world.address)).await
}

async fn plain(client: Arc<Postgres>) -> Result<i64, BoxError> {
    Ok(client.query_one(NOW, &[]).await?.try_get(0)?)
}

fn request(client: Arc<Postgres>) -> Ask {
    ask(client, plain)
}

pub(super) fn queries() -> Client {
    Rows::new("tokio-postgres", Some(Kind::Postgres), connect, request)
        .always_warm()
        .does_not_reconnect()
        .tolerated("plain", |client, _| plain(client))
        .recommended("whole query in one spawn_io", |client, _| async move {
            ways::time(&client).await
        })
        .done()
}

/// Computes now and then.
struct Reader {
    work: Work,
    rows: usize,
}

impl Reader {
    fn new(work: Work) -> Self {
        Self { work, rows: 0 }
    }

    fn row(&mut self) {
        self.rows += 1;
        if self.rows.is_multiple_of(ROWS_BETWEEN) {
            self.work.of(AT_TIMES);
        }
    }
}

async fn rows_plainly(client: Arc<Postgres>, work: Work) -> Result<Answer, BoxError> {
    let mut reader = Reader::new(work);
    let rows = client.query_raw(MANY_ROWS, [0_i64; 0]).await?;
    let mut rows = std::pin::pin!(rows);
    while rows.try_next().await?.is_some() {
        reader.row();
    }
    Ok(computed(None))
}

async fn rows_by_hand(client: Arc<Postgres>, cpu: Cpu, work: Work) -> Result<Answer, BoxError> {
    let (sender, mut rows) = mpsc::channel(1024);
    let read = cpu.io().spawn(async move {
        let rows = client.query_raw(MANY_ROWS, [0_i64; 0]).await?;
        // An error of the channel is a job that has gone.
        rows.map(Ok).forward(sender).await?;
        Ok::<_, BoxError>(())
    });
    let mut reader = Reader::new(work);
    while let Some(row) = rows.next().await {
        row?;
        reader.row();
    }
    read.await??;
    Ok(computed(None))
}

pub(super) fn rows() -> Client {
    let server = Some(Kind::Postgres);
    Rows::new("tokio-postgres, rows", server, connect, request)
        .always_warm()
        .does_not_reconnect()
        .on_two(|client, _, work| rows_plainly(client, work), rows_by_hand)
        .warned("plain", Stalls, rows_plainly)
        .warned("stream_from_io", Stalls, rows_streamed)
        .recommended("whole result in one spawn_io", |client, work| async move {
            let mut reader = Reader::new(work);
            for row in ways::rows(&client).await? {
                row.try_get::<_, i64>(0)?;
                reader.row();
            }
            Ok(computed(None))
        })
        .done()
}

/// The buffer is bounded: when it is full, the connection waits for the job.
async fn rows_streamed(client: Arc<Postgres>, work: Work) -> Result<Answer, BoxError> {
    let query = async move { client.query_raw(MANY_ROWS, [0_i64; 0]).await };
    let rows = query.try_flatten_stream();
    let mut rows = twolane::Handle::current().stream_from_io(rows, 1024, |_| 1);
    let mut reader = Reader::new(work);
    while let Some(row) = rows.try_next().await? {
        row?;
        reader.row();
    }
    Ok(computed(None))
}
