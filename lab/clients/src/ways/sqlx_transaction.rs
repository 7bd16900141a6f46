//! sqlx: a transaction whose values are computed before. All of it is one `spawn_io`.

use sqlx::PgPool;

use crate::BoxError;

pub async fn insert(pool: &PgPool, sums: Vec<i64>) -> Result<(), BoxError> {
    let pool = pool.clone();
    let transaction = async move {
        let mut transaction = pool.begin().await?;
        for sum in sums {
            let insert = sqlx::query(crate::sql::INSERT).bind(sum);
            insert.execute(&mut *transaction).await?;
        }
        transaction.commit().await
    };
    Ok(twolane::spawn_io(transaction).await??)
}
