//! sqlx: a pool that only the I/O lane touches, for queries that read like plain ones.

use sqlx::PgPool;
use twolane::IoShared;

use crate::BoxError;

/// Once: `cpu.io_owned(pool).shared()`, or `IoShared::new` where the pool is made.
pub async fn time(pool: &IoShared<PgPool>) -> Result<i64, BoxError> {
    let query = async |pool| sqlx::query_scalar(crate::sql::NOW).fetch_one(&pool).await;
    Ok(pool.with(query).await??)
}
