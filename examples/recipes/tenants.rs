//! Customers share the lane: one that sends a thousand requests does not delay the others.
//!
//! For every service whose customers differ in what they send. A handler finds the customer by the
//! request's token, and submits the job under the customer's key. Copy all but `main`.
//!
//! - Customers that have jobs queued get equal shares of the CPU time, whatever each job takes. One
//!   that pays has a weight of four.
//! - A customer who has [`MAX_JOBS`] jobs that have not ended is answered with 429, and the others are
//!   not.
//! - The key is what was *authenticated*: whoever can invent keys gets a share for each.
//!
//! ```text
//! cargo run --release -p examples --example tenants        # http://127.0.0.1:3000, until ctrl-c
//! curl -i -H 'authorization: Bearer of-acme' -d 'a page' http://127.0.0.1:3000/compress
//! ```
//!
//! To copy it: `cargo add twolane -F axum`, `cargo add axum flate2` and `cargo add tokio -F full`.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, HeaderMap};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use flate2::Compression;
use flate2::bufread::GzEncoder;
use tokio::net::TcpListener;
use twolane::axum::JobError;
use twolane::{CpuRuntime, Handle, Key};

/// Of one customer.
pub const MAX_JOBS: u16 = 32;

#[derive(Clone)]
pub struct Customer {
    pub name: &'static str,
    pub pays: bool,
}

/// By token: stands for your sessions, or for the signature that you check.
pub type Customers = Arc<HashMap<String, Customer>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let acme = Customer {
        name: "acme",
        pays: true,
    };
    let customers = HashMap::from([("of-acme".to_owned(), acme)]);
    let cpu = CpuRuntime::new()?;
    let listener = TcpListener::bind(&address).await?;
    axum::serve(listener, routes(cpu.handle(), Arc::new(customers))).await?;
    Ok(())
}

pub fn routes(cpu: &Handle, customers: Customers) -> Router {
    Router::new()
        .route("/compress", post(compress))
        .with_state((cpu.clone(), customers))
}

async fn compress(
    State((cpu, customers)): State<(Handle, Customers)>,
    headers: HeaderMap,
    page: Bytes,
) -> Result<Response, JobError> {
    let token = headers
        .get(AUTHORIZATION)
        .and_then(|token| token.to_str().ok());
    let token = token.and_then(|token| token.strip_prefix("Bearer "));
    let Some(customer) = token.and_then(|token| customers.get(token)) else {
        return Ok(StatusCode::UNAUTHORIZED.into_response());
    };
    let weight = if customer.pays { 4 } else { 1 };
    let key = Key::new(customer.name).with_weight(weight);
    let cpu = cpu.with_key(key.with_max_jobs(MAX_JOBS));
    // Dropped with the handler's future, if the client goes away: then the job is cancelled.
    let compressed = cpu.spawn_cpu(move || gzip(&page)).await?;
    Ok(match compressed {
        Ok(bytes) => bytes.into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    })
}

fn gzip(page: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressed = Vec::new();
    GzEncoder::new(page, Compression::best()).read_to_end(&mut compressed)?;
    Ok(compressed)
}
