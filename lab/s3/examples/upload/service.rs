//! A service that gunzips an upload, parses it, and writes it to object storage, in
//! bounded memory.
//!
//! It replaces Go's pipeline of goroutines over channels, and in Rust a `spawn_blocking`
//! for each chunk behind `buffered(n)`. Each lane does its own part:
//!
//! 1. The I/O lane reads the body.
//! 2. One job of the CPU lane gunzips it: a decoder is sequential (`source_on_cpu`).
//! 3. All threads of the CPU lane parse and encode blocks of lines. Their order stays.
//! 4. The I/O lane writes the parts of a multipart upload.
//!
//! Each step has a limit in bytes, so a slow store slows the client down. An upload that
//! is cut short is aborted, and leaves no object.

use std::io;
use std::sync::Arc;

use async_compression::tokio::bufread::GzipDecoder;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt};
use object_store_0_14::{ObjectStore, ObjectStoreExt, WriteMultipart};
use tokio_util::codec::FramedRead;
use tokio_util::io::StreamReader;
use twolane::{CpuStreamExt, Handle};

use crate::lines::{self, BLOCK, Block, Rows, WholeLines};

pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// How many bytes wait between two steps.
pub const LIMIT: usize = 1 << 20;
/// How many blocks are parsed, or wait for their turn to be written.
const WINDOW: usize = 64;
/// How many parts are on their way to the store, and their size.
pub const PARTS: usize = 2;
pub const PART: usize = 5 << 20;

type Service = (Handle, Arc<dyn ObjectStore>);

pub fn routes(cpu: Handle, store: Arc<dyn ObjectStore>) -> Router {
    Router::new()
        .route("/rows/{name}", post(upload))
        .route("/health", get(async || "ok\n"))
        .with_state((cpu, store))
}

/// axum may drop this future if the client goes away. The upload must be completed or
/// aborted also then, so it runs in a task.
async fn upload(
    State(service): State<Service>,
    Path(name): Path<String>,
    body: Body,
) -> Result<String, (StatusCode, String)> {
    let rows = tokio::spawn(write_object(service, name, body)).await;
    let rows = rows.map_err(Error::from).flatten();
    // A service tells the client's errors from its own.
    let rows = rows.map_err(|error| (StatusCode::BAD_REQUEST, format!("{error}\n")))?;
    Ok(format!("{rows} rows\n"))
}

async fn write_object((cpu, store): Service, name: String, body: Body) -> Result<usize, Error> {
    let upload = store.put_multipart(&name.into()).await?;
    let mut upload = WriteMultipart::new_with_chunk_size(upload, PART);
    match write_parts(encoded(&cpu, body), &mut upload).await {
        Ok(rows) => {
            // It aborts the upload if it fails.
            upload.finish().await?;
            Ok(rows)
        }
        Err(error) => {
            upload.abort().await?;
            Err(error)
        }
    }
}

async fn write_parts(
    mut blocks: impl Stream<Item = Result<Rows, Error>> + Unpin,
    upload: &mut WriteMultipart,
) -> Result<usize, Error> {
    let mut rows = 0;
    while let Some(block) = blocks.try_next().await? {
        upload.wait_for_capacity(PARTS).await?;
        rows += block.count;
        upload.put(block.encoded);
    }
    Ok(rows)
}

fn encoded(cpu: &Handle, body: Body) -> impl Stream<Item = Result<Rows, Error>> + Unpin {
    let body = cpu.stream_from_io(body.into_data_stream(), LIMIT, |chunk| {
        chunk.as_ref().map_or(0, Bytes::len)
    });
    let body = body.map(|chunk| chunk?.map_err(io::Error::other));
    let mut gunzip = GzipDecoder::new(StreamReader::new(body));
    gunzip.multiple_members(true);

    let blocks = FramedRead::with_capacity(gunzip, WholeLines, BLOCK);
    blocks
        .on_cpu(cpu)
        .source_on_cpu()
        .map(|block: Block| lines::encode(&block?))
        .max_bytes(LIMIT, lines::block_len, lines::rows_len)
        .buffered(WINDOW)
        .map(|block| block?)
}
