//! redis: one connection for all.

use std::sync::Arc;

use redis::aio::{
    ConnectionLike, ConnectionManager, ConnectionManagerConfig, MultiplexedConnection,
};
use tokio::sync::OnceCell;
use twolane::HandleExt;

use super::Shows::{JobPanics, RequestPanics};
use super::build::{Rows, ask};
use super::{Client, Mark, World};
use crate::BoxError;
use crate::servers::Kind;
use crate::ways::{self, redis_connection::IoConnection};

fn open(world: &World) -> Result<redis::Client, BoxError> {
    Ok(redis::Client::open(format!("redis://{}", world.address))?)
}

async fn time(mut connection: impl ConnectionLike) -> Result<i64, BoxError> {
    let time = redis::cmd("TIME").query_async(&mut connection).await?;
    let (seconds, micros): (i64, i64) = time;
    Ok(seconds * 1_000_000 + micros)
}

/// A connection that the first request makes, in a job.
#[derive(Clone)]
struct Lazy {
    client: redis::Client,
    connection: Arc<OnceCell<MultiplexedConnection>>,
}

impl Lazy {
    async fn connect(self) -> Result<MultiplexedConnection, BoxError> {
        let make = || self.client.get_multiplexed_async_connection();
        Ok(self.connection.get_or_try_init(make).await?.clone())
    }

    async fn in_a_job(self) -> Result<i64, BoxError> {
        time(self.connect().await?).await
    }

    /// Until a job has made one, with a connection of its own.
    async fn on_the_io_side(self) -> Result<i64, BoxError> {
        match self.connection.get() {
            Some(connection) => time(connection.clone()).await,
            None => time(self.client.get_multiplexed_async_connection().await?).await,
        }
    }
}

pub(super) fn multiplexed() -> Client {
    let make = |world: World| async move {
        Ok(Lazy {
            client: open(&world)?,
            connection: Arc::default(),
        })
    };
    let (name, server) = ("redis MultiplexedConnection", Some(Kind::Redis));
    Rows::new(name, server, make, |lazy| ask(lazy, Lazy::on_the_io_side))
        .always_warm()
        .does_not_reconnect()
        .tolerated("made in a job, plain", |lazy, _| lazy.in_a_job())
        .warned_in_cpu_context(JobPanics, |lazy, _| lazy.in_a_job())
        .done()
}

pub(super) fn manager() -> Client {
    let make = |world: World| async move {
        let client = open(&world)?;
        Ok(client.get_connection_manager_lazy(ConnectionManagerConfig::new())?)
    };
    let request = |manager| ask(manager, |manager: ConnectionManager| time(manager));
    Rows::new("redis ConnectionManager", Some(Kind::Redis), make, request)
        .tolerated("plain", |manager, _| time(manager))
        .warned_in_cpu_context(RequestPanics, |manager, _| time(manager))
        .way(
            "ConnectionLike on the I/O lane",
            Mark::Recommended,
            |manager, _| IoConnection(manager),
            |connection, _| time(connection),
        )
        .way(
            "IoShared",
            Mark::Recommended,
            |manager, cpu| cpu.io_owned(manager).shared(),
            |manager, _| async move {
                let (seconds, micros) = ways::redis_shared::time(&manager).await?;
                Ok(seconds * 1_000_000 + micros)
            },
        )
        .done()
}
