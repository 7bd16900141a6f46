//! tokio-postgres: the connection is a task of the I/O lane, and so is each query.

use std::sync::Arc;

use tokio_postgres::{Client, NoTls, Row};
use twolane::spawn_io;

use crate::BoxError;

/// On the I/O side; in a job inside `spawn_io`.
pub async fn connect(url: &str) -> Result<Arc<Client>, BoxError> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(Arc::new(client))
}

pub async fn time(client: &Arc<Client>) -> Result<i64, BoxError> {
    let client = client.clone();
    let query = async move { client.query_one(crate::sql::NOW, &[]).await };
    Ok(spawn_io(query).await??.try_get(0)?)
}

/// All rows of a result, to be decoded in the job. A stream that the job reads slowly would
/// hold up all others on this connection: for a result that is too large, give
/// the job a connection of its own.
pub async fn rows(client: &Arc<Client>) -> Result<Vec<Row>, BoxError> {
    let client = client.clone();
    let query = async move { client.query(crate::sql::MANY_ROWS, &[]).await };
    Ok(spawn_io(query).await??)
}
