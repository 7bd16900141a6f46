//! sqlx: one query. All of it is one `spawn_io`: the connection is taken from the pool,
//! used and given back on the I/O lane.

use sqlx::PgPool;

use crate::BoxError;

pub async fn time(pool: &PgPool) -> Result<i64, BoxError> {
    let pool = pool.clone();
    let query = async move { sqlx::query_scalar(crate::sql::NOW).fetch_one(&pool).await };
    Ok(twolane::spawn_io(query).await??)
}
