//! How to use a client in a job: the code to paste, a file for each.

pub mod aws_sdk_s3;
pub mod hyper_layer;
pub mod hyper_response;
pub mod kafka;
pub mod object_store;
pub mod redis_connection;
pub mod redis_shared;
pub mod reqwest;
pub mod sqlx_owned;
pub mod sqlx_query;
pub mod sqlx_rows;
pub mod sqlx_shared;
pub mod sqlx_transaction;
pub mod tokio_postgres;
pub mod tonic_bidi;
pub mod tonic_unary;
pub mod tonic_upload;
