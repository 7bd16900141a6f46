//! What does an upload look like that computes, in bounded memory, while `/health`
//! answers?
//!
//! It starts an S3 server and the service, uploads a gzipped table, and asks `/health`
//! meanwhile. Then it uploads the same with its end cut off.
//!
//! ```text
//! cargo run --release -p twolane-s3 --example upload -- --quick
//! ```
//!
//! To copy it: `service.rs`. Its tests are `tests/upload/`.

mod lines;
mod service;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use object_store_0_14::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store_0_14::{ObjectStore, ObjectStoreExt};
use reqwest::Client;
use service::Error;
use tokio::net::TcpListener;
use twolane::CpuRuntime;
use twolane_s3::server::{self, Access};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let (_server, access) = server::from_environment(Duration::from_millis(5))?;
    let store = store(&access)?;
    let cpu = CpuRuntime::new()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let service = axum::serve(
        listener,
        service::routes(cpu.handle().clone(), store.clone()),
    );
    tokio::spawn(service.into_future());

    let rows = if quick { 500_000 } else { 10_000_000 };
    let table = cpu.spawn_cpu(move || gzipped(rows)).await?;
    println!("{rows} rows, {} bytes of gzip", table.len());
    let client = Client::new();
    let whole = client.post(format!("{url}/rows/whole")).body(table.clone());
    let mut whole = tokio::spawn(whole.send());
    let mut healthy = 0;
    let answer = loop {
        tokio::select! {
            answer = &mut whole => break answer??,
            health = client.get(format!("{url}/health")).send() => {
                health?.error_for_status()?;
                healthy += 1;
            }
        }
    };
    println!(
        "whole: {}, {}",
        answer.status(),
        answer.text().await?.trim()
    );
    println!("meanwhile /health answered {healthy} times");
    let size = store.head(&"whole".into()).await?.size;
    println!("the object has {size} bytes, {} a row", lines::ROW);

    let cut = client.post(format!("{url}/rows/cut"));
    let answer = cut.body(table[..table.len() - 1].to_vec()).send().await?;
    println!("cut: {}, {}", answer.status(), answer.text().await?.trim());
    let object = store.head(&"cut".into()).await;
    println!("look for: no object, but {}", object.unwrap_err());
    cpu.shutdown().await;
    Ok(())
}

fn store(access: &Access) -> Result<Arc<dyn ObjectStore>, Error> {
    let mut builder = AmazonS3Builder::new();
    for (key, value) in access.config() {
        if let Ok(key) = key.parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    Ok(Arc::new(builder.build()?))
}

fn gzipped(rows: u64) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    for key in 0..rows {
        writeln!(gzip, "{key},{}", fastrand::u64(..)).expect("a Vec takes all");
    }
    gzip.finish().expect("a Vec takes all")
}
