//! The download is whole, or broken; and it is not far ahead of its reader.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use axum::Router;
use axum::response::IntoResponse;
use axum::routing::get;
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use futures::{StreamExt, stream};
use reqwest::header::CONTENT_ENCODING;
use tokio::io::AsyncReadExt;
use tokio::sync::oneshot;
use tokio::task::yield_now;
use twolane::Handle;

use super::recipes::download::{CHUNK, LIMIT, of_rows, of_source, reader};
use super::with_cpu;
use crate::serve;

const ROWS: u32 = 100_000;

fn row(n: u32) -> String {
    format!("{n}: {}", n.wrapping_mul(0x9E37_79B9))
}

fn text() -> String {
    (0..ROWS).map(|n| row(n) + "\n").collect()
}

/// Panics half-way.
fn broken_row(n: u32) -> String {
    assert!(n < ROWS / 2, "the rows are broken");
    row(n)
}

fn chunks() -> impl Iterator<Item = io::Result<Bytes>> + Send + 'static {
    let text = Bytes::from(text());
    let chunk = 10_000;
    (0..text.len())
        .step_by(chunk)
        .map(move |at| Ok(text.slice(at..text.len().min(at + chunk))))
}

fn gunzipped(gzip: &[u8]) -> String {
    let mut text = String::new();
    let mut decoder = GzDecoder::new(gzip);
    decoder.read_to_string(&mut text).unwrap();
    assert!(decoder.into_inner().is_empty(), "there is more");
    text
}

fn routes(cpu: &Handle) -> Router {
    let with = |f: fn(&Handle) -> axum::response::Response| {
        let cpu = cpu.clone();
        get(async move || f(&cpu))
    };
    let rows = with(|cpu| of_rows(cpu, (0..ROWS).map(row)).into_response());
    let rows_panic = with(|cpu| of_rows(cpu, (0..ROWS).map(broken_row)).into_response());
    let file = with(|cpu| of_source(cpu, stream::iter(chunks())).into_response());
    let file_fails = with(|cpu| {
        let error = stream::iter([Err(io::Error::other("the disk is broken"))]);
        of_source(cpu, stream::iter(chunks().take(50)).chain(error)).into_response()
    });
    let file_panics = with(|cpu| {
        let panic = stream::poll_fn(|_| panic!("the file is broken"));
        of_source(cpu, stream::iter(chunks().take(50)).chain(panic)).into_response()
    });
    Router::new()
        .route("/rows", rows)
        .route("/rows_panic", rows_panic)
        .route("/file", file)
        .route("/file_fails", file_fails)
        .route("/file_panics", file_panics)
}

#[test]
fn a_client_gunzips_what_was_produced() {
    with_cpu(async |cpu| {
        let url = serve(routes(cpu)).await;
        for path in ["rows", "file"] {
            let answer = reqwest::get(format!("{url}/{path}")).await.unwrap();
            assert_eq!(answer.headers()[CONTENT_ENCODING], "gzip");
            let found = gunzipped(&answer.bytes().await.unwrap());
            assert!(found == text(), "{path}: another text");
        }
    });
}

#[test]
fn a_producer_that_stops_breaks_the_body() {
    with_cpu(async |cpu| {
        let url = serve(routes(cpu)).await;
        for path in ["rows_panic", "file_fails", "file_panics"] {
            let answer = reqwest::get(format!("{url}/{path}")).await.unwrap();
            assert_eq!(answer.status(), 200, "{path}");
            let mut chunks = answer.bytes_stream();
            let mut end = chunks.next().await;
            while let Some(Ok(_)) = end {
                end = chunks.next().await;
            }
            assert!(end.is_some(), "{path}: the body has ended");
        }
    });
}

#[test]
fn a_reader_reads_it_and_gets_the_panic() {
    with_cpu(async |cpu| {
        let mut whole = Box::pin(reader(cpu, (0..ROWS).map(row)));
        let mut gzip = Vec::new();
        whole.read_to_end(&mut gzip).await.unwrap();
        assert!(gunzipped(&gzip) == text(), "another text");

        let mut broken = Box::pin(reader(cpu, (0..ROWS).map(broken_row)));
        let error = broken.read_to_end(&mut gzip).await.unwrap_err();
        assert!(error.to_string().contains("the rows are broken"), "{error}");
    });
}

/// Tells when it is dropped.
struct Rows {
    made: Arc<AtomicUsize>,
    _dropped: oneshot::Sender<()>,
}

/// Without an end.
impl Iterator for Rows {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let n = self.made.fetch_add(1, SeqCst) as u64;
        let word = |k: u64| (n ^ k).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        Some(format!("{:016x}{:016x}", word(1 << 40), word(1 << 50)))
    }
}

impl Rows {
    fn new() -> (Self, Arc<AtomicUsize>, oneshot::Receiver<()>) {
        let (made, (dropped, wait)) = (Arc::default(), oneshot::channel());
        let rows = Self {
            made: Arc::clone(&made),
            _dropped: dropped,
        };
        (rows, made, wait)
    }
}

#[test]
fn the_producer_is_ahead_by_the_limit_and_stops_with_the_reader() {
    with_cpu(async |cpu| {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        for row in Rows::new().0.take(10_000) {
            writeln!(gzip, "{row}").unwrap();
        }
        let row_size = gzip.finish().unwrap().len() as f64 / 10_000.0;

        let (rows, made, dropped) = Rows::new();
        let ahead = || (made.load(SeqCst) as f64 * row_size) as usize;
        let mut reader = Box::pin(reader(cpu, rows));
        reader.read_u8().await.unwrap();
        // No poll from here on: the producer goes on, and then waits.
        loop {
            assert!(ahead() <= LIMIT + 6 * CHUNK, "{} bytes", ahead());
            let now = cpu.metrics();
            if ahead() > LIMIT / 2 && now.queued + now.running == 0 && now.suspended == 1 {
                break;
            }
            yield_now().await;
        }
        drop(reader);
        assert!(dropped.await.is_err());
    });
}
