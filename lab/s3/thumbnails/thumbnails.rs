//! An upload becomes a thumbnail in S3: decoded and scaled in a job, stored by the handler.
//!
//! For services that accept large uploads and compute on them. The extractor `Reserved` takes a
//! permit before axum reads the body, so a request that finds the queue full gets 503 and costs no
//! memory. All bodies together take at most [`UPLOADS`] times [`BODY`].
//!
//! - A client that sends slowly holds its permit, so the handler limits the time of an upload.
//! - A small file can be a huge picture. [`thumbnail`] limits the sides, and `image` most of the
//!   memory of a decoder, of which each thread runs one: not that of a progressive JPEG, which may
//!   take some ten bytes for each pixel. Choose [`MAX_SIDE`] by it. An unoptimized `image` is ten
//!   times as slow.
//! - Only handlers use the store: a plain one, without an `IoConnector`. A `put` holds no permit.
//! - If the client goes away, a queued job never runs. A running one continues to its end, since
//!   a decoder cannot ask a checkpoint. One that panics on a broken picture is a 500.
//!
//! ```text
//! export AWS_ENDPOINT=http://127.0.0.1:9000 AWS_ALLOW_HTTP=true AWS_REGION=us-east-1
//! export AWS_BUCKET=.. AWS_ACCESS_KEY_ID=.. AWS_SECRET_ACCESS_KEY=..
//! cargo run --release -p twolane-thumbnails --example thumbnails      # http://127.0.0.1:3000
//! curl -i --data-binary @cat.png http://127.0.0.1:3000/thumbnails/cat
//! ```
//!
//! In this repository object_store is built without TLS, so the endpoint is a local one. To copy
//! it: `cargo add twolane -F axum`, `cargo add axum`, `cargo add tokio -F full`,
//! `cargo add object_store -F aws`, and `cargo add image --no-default-features -F jpeg,png`. A
//! graceful shutdown is in `examples/axum.rs`.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, FromRef, FromRequest, Path, Request, State};
use axum::{Router, body::Bytes, http::StatusCode, routing::post};
use image::{ImageFormat, ImageReader, ImageResult, Limits};
use object_store::{ObjectStore, ObjectStoreExt, aws::AmazonS3Builder};
use tokio::net::TcpListener;
use tokio::time::timeout;
use twolane::axum::{JobError, Reserved};
use twolane::{BuildError, CpuRuntime, Handle, Priority};

/// Uploads whose body is being read, or whose job is queued or running.
pub const UPLOADS: usize = 16;
pub const BODY: usize = 20 << 20;
const TIME_TO_UPLOAD: Duration = Duration::from_secs(30);
const TIME_TO_STORE: Duration = Duration::from_secs(5);
/// Of the picture, and of the thumbnail.
pub const MAX_SIDE: u32 = 10_000;
pub const SIDE: u32 = 256;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let store = Arc::new(AmazonS3Builder::from_env().build()?);
    let cpu = cpu_lane()?;
    let listener = TcpListener::bind(&address).await?;
    axum::serve(listener, routes(cpu.handle().clone(), store)).await?;
    Ok(())
}

pub fn cpu_lane() -> Result<CpuRuntime, BuildError> {
    CpuRuntime::builder()
        .queue_limit(Priority::Normal, UPLOADS)
        .build()
}

#[derive(Clone)]
struct App {
    cpu: Handle,
    store: Arc<dyn ObjectStore>,
}

/// For `Reserved`.
impl FromRef<App> for Handle {
    fn from_ref(app: &App) -> Self {
        app.cpu.clone()
    }
}

pub fn routes(cpu: Handle, store: Arc<dyn ObjectStore>) -> Router {
    Router::new()
        .route("/thumbnails/{name}", post(upload))
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(App { cpu, store })
}

async fn upload(
    State(app): State<App>,
    Path(name): Path<String>,
    Reserved(permit): Reserved,
    request: Request,
) -> axum::response::Result<StatusCode> {
    let body = timeout(TIME_TO_UPLOAD, Bytes::from_request(request, &())).await;
    let body = body.map_err(|_| StatusCode::REQUEST_TIMEOUT)??;

    let job = permit.spawn_cpu(move || thumbnail(&body)).await;
    let jpeg = job.map_err(JobError::from)?; // 503, or 500 for a panic
    let jpeg = jpeg.map_err(|error| (StatusCode::BAD_REQUEST, format!("{error}\n")))?;

    let key = format!("{name}.jpg").into();
    match timeout(TIME_TO_STORE, app.store.put(&key, jpeg.into())).await {
        Ok(Ok(_)) => return Ok(StatusCode::CREATED),
        Ok(Err(error)) => eprintln!("{name}: {error}"),
        Err(elapsed) => eprintln!("{name}: {elapsed}"),
    }
    Err(StatusCode::BAD_GATEWAY.into())
}

pub fn thumbnail(upload: &[u8]) -> ImageResult<Vec<u8>> {
    let mut reader = ImageReader::new(Cursor::new(upload)).with_guessed_format()?;
    let mut limits = Limits::default(); // 512 MiB for the decoder
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    reader.limits(limits);
    let mut image = reader.decode()?;
    if image.width().max(image.height()) > SIDE {
        image = image.thumbnail(SIDE, SIDE);
    }
    let small = image.into_rgb8(); // JPEG has no alpha
    let mut jpeg = Cursor::new(Vec::new());
    small.write_to(&mut jpeg, ImageFormat::Jpeg)?;
    Ok(jpeg.into_inner())
}
