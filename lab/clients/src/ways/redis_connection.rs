//! redis: a connection whose commands run on the I/O lane. All that takes a
//! `ConnectionLike` takes it: `AsyncCommands`, `cmd`, `pipe`, `Script`.

use redis::aio::ConnectionLike;
use redis::{Cmd, Pipeline, RedisError, RedisFuture, Value};
use twolane::JoinError;

/// `C` is a `ConnectionManager` or a `MultiplexedConnection`, made on the I/O lane.
#[derive(Clone)]
pub struct IoConnection<C>(pub C);

impl<C: ConnectionLike + Clone + Send + Sync + 'static> ConnectionLike for IoConnection<C> {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        let (mut inner, cmd) = (self.0.clone(), cmd.clone());
        let task = twolane::spawn_io(async move { inner.req_packed_command(&cmd).await });
        Box::pin(async { task.await.map_err(lost)? })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipe: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let (mut inner, pipe) = (self.0.clone(), pipe.clone());
        let task =
            twolane::spawn_io(async move { inner.req_packed_commands(&pipe, offset, count).await });
        Box::pin(async { task.await.map_err(lost)? })
    }

    fn get_db(&self) -> i64 {
        self.0.get_db()
    }
}

fn lost(error: JoinError) -> RedisError {
    std::io::Error::other(error).into()
}
