//! How do Go's patterns of concurrency look as streams on the CPU lane?
//!
//! A recipe each, to copy; the header of each file says what it replaces.
//!
//! ```text
//! cargo run --release -p examples --example streams             # all of them
//! cargo run --release -p examples --example streams -- fan
//! ```
//!
//! One more recipe, an upload to object storage, is `lab/s3/examples/upload`. The tests are in
//! `tests/streams`.

mod consumer;
mod download;
mod fan;
mod pipeline;
mod pool;
mod show;

pub type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    show::show().await
}
