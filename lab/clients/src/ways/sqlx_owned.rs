//! sqlx: a transaction in which the job computes. Its connection is the job's for as long
//! as it is queued or computes: give such jobs a pool of their own, or the I/O side
//! finds the pool empty.

use sqlx::PgPool;
use twolane::{IoOwned, spawn_io};

use crate::BoxError;

pub async fn insert(pool: &PgPool, compute: impl Fn() -> i64) -> Result<(), BoxError> {
    let pool = pool.clone();
    let begin = async move { Ok::<_, BoxError>(IoOwned::new(pool.begin().await?)) };
    let mut transaction = spawn_io(begin).await??;
    for _ in 0..2 {
        let insert = sqlx::query(crate::sql::INSERT).bind(compute());
        transaction
            .with(async move |transaction| insert.execute(&mut **transaction).await)
            .await??;
    }
    // Dropped without this, it rolls back, on the I/O lane.
    Ok(transaction
        .take(async |transaction| transaction.commit().await)
        .await??)
}
