//! Tokenize: a small text in place, a large one on the lane.
//!
//! For gateways of language models, and for everyone who counts tokens. With the tokenizer of this
//! file a prompt of 100 kB takes some 80 ms. In a handler that keeps a Tokio thread, and `/health`
//! waits as long. Copy all but `main` and [`tokenizer`].
//!
//! - A text of at most [`IN_PLACE`] bytes takes 0.1 ms in the handler: a job costs more than it
//!   saves. It is answered however long the lane's queue is.
//! - A larger one that would wait for a thread for longer than [`MAX_WAIT`] is answered with 503 and
//!   `Retry-After` at once. The lane finds out how many prompts that are.
//! - The job makes the JSON of the ids as well.
//! - A prompt whose client has gone is dropped from the queue.
//! - `Tokenizer::encode_batch` splits its texts with rayon. In a job it computes on the lane's
//!   threads.
//!
//! ```text
//! cargo run --release -p twolane-tokenize --example tokenize   # http://127.0.0.1:3000
//! curl -d 'A runtime serves input and output.' http://127.0.0.1:3000/tokenize
//! ```
//!
//! To copy it: `cargo add twolane -F axum`, `cargo add axum tokenizers`, `cargo add tokio -F full`.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router, http::StatusCode};
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{Error, Tokenizer};
use tokio::net::TcpListener;
use twolane::axum::JobError;
use twolane::{BuildError, CpuRuntime, Handle, Priority};

/// Bytes.
pub const IN_PLACE: usize = 128;
pub const MAX_WAIT: Duration = Duration::from_millis(500);
/// Bytes of a text. A larger one is a 413.
pub const MAX_TEXT: usize = 1 << 20;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let cpu = cpu_lane()?;
    let listener = TcpListener::bind(&address).await?;
    axum::serve(listener, routes(cpu.handle().clone(), tokenizer()?)).await?;
    Ok(())
}

/// The surrounding Tokio runtime is its I/O lane.
pub fn cpu_lane() -> Result<CpuRuntime, BuildError> {
    let builder = CpuRuntime::builder();
    builder.max_wait(Priority::Normal, MAX_WAIT).build()
}

/// Yours is `Tokenizer::from_file("tokenizer.json")`.
pub fn tokenizer() -> Result<Tokenizer, Error> {
    let mut tokenizer = Tokenizer::new(BPE::default());
    tokenizer.with_pre_tokenizer(Some(ByteLevel::default().add_prefix_space(false)));
    let trainer = BpeTrainer::builder().vocab_size(2_000).show_progress(false);
    let trainer = trainer.initial_alphabet(ByteLevel::alphabet().into_iter().collect());
    let text = include_str!("tokenize.rs").lines().map(str::to_owned);
    tokenizer.train(&mut TrainerWrapper::from(trainer.build()), text)?;
    Ok(tokenizer)
}

pub fn routes(cpu: Handle, tokenizer: Tokenizer) -> Router {
    Router::new()
        .route("/tokenize", post(tokenize))
        .layer(DefaultBodyLimit::max(MAX_TEXT))
        .with_state((cpu, Arc::new(tokenizer)))
}

async fn tokenize(
    State((cpu, tokenizer)): State<(Handle, Arc<Tokenizer>)>,
    text: String,
) -> Result<Response, JobError> {
    if text.len() <= IN_PLACE {
        return Ok(ids(&tokenizer, &text));
    }
    Ok(cpu.spawn_cpu(move || ids(&tokenizer, &text)).await?)
}

fn ids(tokenizer: &Tokenizer, text: &str) -> Response {
    match tokenizer.encode_fast(text, false) {
        Ok(encoding) => Json(encoding.get_ids()).into_response(),
        Err(_error) => StatusCode::INTERNAL_SERVER_ERROR.into_response(), // log it
    }
}
