//! redis: a connection that only the I/O lane touches. Several commands share a hop.

use redis::aio::ConnectionManager;
use twolane::IoShared;

use crate::BoxError;

/// Once: `cpu.io_owned(manager).shared()`, or `IoShared::new` where it is made.
pub async fn time(redis: &IoShared<ConnectionManager>) -> Result<(i64, i64), BoxError> {
    let time = async |mut redis| redis::cmd("TIME").query_async(&mut redis).await;
    Ok(redis.with(time).await??)
}
