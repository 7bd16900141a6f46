//! A download that is compressed on the fly.
//!
//! Replaces Go's goroutine that writes into an `io.Pipe`, and in Rust a `spawn_blocking`
//! that writes into a channel. The producer computes on the CPU lane, a limited number of
//! bytes ahead of the client. If it panics, the body breaks. It does not end, so the
//! client cannot take the part for the whole.

use std::io::{self, Write};
use std::mem;

use async_compression::tokio::bufread::GzipEncoder;
use axum::body::Body;
use axum::http::header::CONTENT_ENCODING;
use axum::response::IntoResponse;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::{Stream, StreamExt, TryStreamExt};
use tokio::io::AsyncRead;
use tokio_util::io::{ReaderStream, StreamReader};
use twolane::stream::Buffered;
use twolane::{CpuIteratorExt, Handle};

/// How far the producer is ahead.
pub const LIMIT: usize = 1 << 20;
const CHUNKS: usize = 64;
pub const CHUNK: usize = 32 * 1024;

/// What is computed row by row.
pub fn of_rows(
    cpu: &Handle,
    rows: impl Iterator<Item = String> + Send + 'static,
) -> impl IntoResponse {
    let body = Body::from_stream(gzipped(cpu, rows));
    ([(CONTENT_ENCODING, "gzip")], body)
}

/// The same, to read from: for `tokio::io::copy` into a file or a socket.
pub fn reader(cpu: &Handle, rows: impl Iterator<Item = String> + Send + 'static) -> impl AsyncRead {
    StreamReader::new(gzipped(cpu, rows).err_into::<io::Error>())
}

fn gzipped(cpu: &Handle, rows: impl Iterator<Item = String> + Send + 'static) -> Buffered<Bytes> {
    let encoder = Some(GzEncoder::new(Vec::new(), Compression::fast()));
    Gzipped { rows, encoder }
        .on_cpu(cpu)
        .max_bytes(LIMIT, Bytes::len, Bytes::len)
        .buffered(CHUNKS)
}

/// What is read by I/O: a file, another's answer. The I/O lane reads it, and the CPU lane
/// compresses it.
pub fn of_source<S>(cpu: &Handle, source: S) -> impl IntoResponse + use<S>
where
    S: Stream<Item = io::Result<Bytes>> + Send + 'static,
{
    let len = |chunk: &io::Result<Bytes>| chunk.as_ref().map_or(0, Bytes::len);
    let source = cpu.stream_from_io(source, LIMIT, len);
    let source = source.map(|chunk| chunk?);
    let gzipped = ReaderStream::new(GzipEncoder::new(StreamReader::new(source)));
    let gzipped = cpu.stream_from_cpu(gzipped, LIMIT, len);
    let body = Body::from_stream(gzipped.map(|chunk| chunk?));
    ([(CONTENT_ENCODING, "gzip")], body)
}

/// Chunks of a gzip file with these rows.
struct Gzipped<I> {
    rows: I,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl<I: Iterator<Item = String>> Iterator for Gzipped<I> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let encoder = self.encoder.as_mut()?;
        while encoder.get_ref().len() < CHUNK {
            let Some(row) = self.rows.next() else {
                let end = self.encoder.take()?.finish();
                return Some(end.expect("a Vec takes all").into());
            };
            writeln!(encoder, "{row}").expect("a Vec takes all");
        }
        Some(mem::take(encoder.get_mut()).into())
    }
}
