//! Requests that come by chance, as many a second as it was said, whether or not the earlier ones are
//! answered; and those for `/health`, as a load balancer asks.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use http::Uri;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tokio::sync::Semaphore;
use tokio::time::{sleep_until, timeout};
use tower::BoxError;
use twolane_benches::child::{self, Killed};
use twolane_benches::findings::empty_histogram;
use twolane_benches::{Sample, current_thread_runtime, tail};

use crate::server::{Done, Lengths, Server};

/// A client waits for so long, and then goes.
const PATIENCE: Duration = Duration::from_secs(3);
/// So that a large machine does not run out of file descriptors.
const CONNECTIONS: usize = 800;
const EVERY: Duration = Duration::from_millis(5);

#[derive(Clone, Copy)]
pub struct Load {
    pub per_second: f64,
    pub lengths: Lengths,
    /// Not counted: the lane learns, queues find their length.
    pub warm_up: Duration,
    pub counted: Duration,
}

#[derive(Clone)]
struct Client {
    client: legacy::Client<HttpConnector, Empty<Bytes>>,
    port: u16,
}

impl Client {
    fn new(port: u16) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = legacy::Client::builder(TokioExecutor::new()).build(connector);
        Self { client, port }
    }

    async fn get(&self, path: &str) -> Result<Bytes, BoxError> {
        let url: Uri = format!("http://127.0.0.1:{}{path}", self.port).parse()?;
        let response = self.client.get(url).await?;
        Ok(response.into_body().collect().await?.to_bytes())
    }

    async fn done(&self) -> Result<Done, BoxError> {
        Ok(serde_json::from_slice(&self.get("/done").await?)?)
    }
}

impl Load {
    pub fn offer(self, server: &Server) -> Result<Sample, BoxError> {
        let mut child = Killed(child::command(server).stdout(Stdio::piped()).spawn()?);
        let stdout = child.0.stdout.take().expect("it is piped");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let port = line.split_whitespace().nth(1).ok_or("it did not start")?;
        let port = port.parse()?;
        let asking = thread::spawn(move || self.ask_health(port));
        let done = current_thread_runtime().block_on(self.ask(port))?;
        let health = asking.join().expect("it returns its errors")?;
        let mut sample = Sample::default();
        let seconds = self.counted.as_secs_f64();
        let cores = server.threads as f64;
        let computed = done.computed_ms as f64 / 1_000.0;
        sample.put("work", "", computed / seconds / cores);
        sample.put("served", "1/s", done.waits.len() as f64 / seconds);
        sample.put("refused", "1/s", done.refused as f64 / seconds);
        sample.put("memory", "MiB", done.memory_kib as f64 / 1_024.0);
        let mut waits = empty_histogram();
        for wait in done.waits {
            waits.saturating_record(wait);
        }
        if !waits.is_empty() {
            sample.put_latencies("wait", waits);
        }
        sample.put_latencies("health", health);
        Ok(sample)
    }

    /// What the service has done in the time that counts.
    async fn ask(self, port: u16) -> Result<Done, BoxError> {
        let client = Client::new(port);
        let connections = Arc::new(Semaphore::new(CONNECTIONS));
        let (begun, mut due, mut counts) = (Instant::now(), Instant::now(), false);
        loop {
            let pause = -(1.0 - fastrand::f64()).ln() / self.per_second;
            due += Duration::try_from_secs_f64(pause).unwrap_or(Duration::MAX / 4);
            let until = due.min(begun + self.warm_up + self.counted);
            if !counts && until >= begun + self.warm_up {
                counts = true;
                sleep_until((begun + self.warm_up).into()).await;
                client.done().await?;
            }
            sleep_until(until.into()).await;
            if until < due {
                return client.done().await;
            }
            let path = format!("/work/{}", self.lengths.pick());
            let (client, connections) = (client.clone(), connections.clone());
            tokio::spawn(async move {
                let _one = connections.acquire().await;
                let _ = timeout(PATIENCE, client.get(&path)).await;
            });
        }
    }

    /// On a thread of its own, which sleeps by the kernel's timer.
    fn ask_health(self, port: u16) -> Result<Histogram<u64>, BoxError> {
        let (runtime, client) = (current_thread_runtime(), Client::new(port));
        let counts_from = Instant::now() + self.warm_up;
        let end = counts_from + self.counted;
        tail::ask_each(EVERY, counts_from, end, || {
            runtime.block_on(client.get("/health")).map(drop)
        })
    }
}
