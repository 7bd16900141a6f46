//! An HTTP client, as small as there is one: it shares the cores with the server.

use std::time::Duration;

use bytes::Bytes;
use hdrhistogram::Histogram;
use http::{StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tower::BoxError;

#[derive(Clone)]
pub struct Client(legacy::Client<HttpConnector, Empty<Bytes>>);

impl Client {
    pub fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self(legacy::Client::builder(TokioExecutor::new()).build(connector))
    }

    /// With all of the body, so that the connection is free again.
    pub async fn get(&self, url: &Uri) -> Result<(StatusCode, Bytes), BoxError> {
        let response = self.0.get(url.clone()).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, body))
    }
}

/// In microseconds.
#[derive(Clone)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    pub fn new() -> Self {
        let up_to_a_minute = Histogram::new_with_bounds(1, 60_000_000, 3);
        Self(up_to_a_minute.expect("these are valid bounds"))
    }

    pub fn record(&mut self, took: Duration) {
        self.0.saturating_record(took.as_micros() as u64);
    }

    /// In milliseconds, as a cell of a table.
    pub fn cell(&self, q: f64) -> String {
        match self.0.len() {
            0 => "-".to_owned(),
            _ => format!("{:.1}", self.0.value_at_quantile(q) as f64 / 1e3),
        }
    }
}
