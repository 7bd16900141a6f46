//! Requests for `/work`: a fixed number per second, whether or not the earlier ones are
//! answered; or one after the other, to find out how many the service can do. And for `/health`,
//! as a load balancer asks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use http::{StatusCode, Uri};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout_at};
use tower::BoxError;
use twolane_benches::Sample;
use twolane_benches::findings::empty_histogram;
use twolane_benches::tail;

use crate::client::Client;

/// How long a client waits from when its request was due.
const PATIENCE: Duration = Duration::from_secs(1);
/// So that a large machine does not run out of file descriptors. A request that
/// finds none of them free in its second is one that gave up.
const CONNECTIONS: usize = 800;
/// From one question for `/health` to the next, on one connection.
const EVERY: Duration = Duration::from_millis(5);
/// Such requests without an answer that long after the end are recorded with the latency
/// that they have then.
const GRACE: Duration = Duration::from_millis(500);

#[derive(Clone, Copy)]
pub struct Load {
    pub per_second: f64,
    /// Not counted: pools fill, queues find their length.
    pub warm_up: Duration,
    pub counted: Duration,
}

enum Answer {
    Status(StatusCode),
    GaveUp,
    Failed,
}

fn record(latencies: &mut Histogram<u64>, took: Duration) {
    latencies.saturating_record(took.as_nanos() as u64);
}

impl Load {
    /// What becomes of the requests that are due in the time that counts.
    pub async fn offer(self, url: Uri, sample: &mut Sample) -> Result<(), BoxError> {
        let client = Client::new();
        let connections = Arc::new(Semaphore::new(CONNECTIONS));
        let begun = Instant::now();
        let counts_from = begun + self.warm_up;
        let lasts = self.warm_up + self.counted;
        let mut asked = JoinSet::new();
        for n in 0.. {
            let after = Duration::from_secs_f64(f64::from(n) / self.per_second);
            if after >= lasts {
                break;
            }
            let due = begun + after;
            sleep_until(due.into()).await;
            let (client, url, connections) = (client.clone(), url.clone(), connections.clone());
            asked.spawn(async move {
                let answer = async {
                    let _one = connections.acquire().await?;
                    client.get(&url).await
                };
                let answer = match timeout_at((due + PATIENCE).into(), answer).await {
                    Ok(Ok((status, _))) => Answer::Status(status),
                    Ok(Err(_)) => Answer::Failed,
                    Err(_) => Answer::GaveUp,
                };
                (due, answer, due.elapsed())
            });
        }
        let mut latencies = empty_histogram();
        let [mut shed, mut gave_up, mut failed] = [0.0; 3];
        while let Some(asked) = asked.join_next().await {
            let (due, answer, took) = asked?;
            if due < counts_from {
                continue;
            }
            match answer {
                Answer::Status(StatusCode::OK) => record(&mut latencies, took),
                Answer::Status(StatusCode::SERVICE_UNAVAILABLE) => shed += 1.0,
                Answer::GaveUp => gave_up += 1.0,
                Answer::Status(_) | Answer::Failed => failed += 1.0,
            }
        }
        let served = latencies.len() as f64;
        for (metric, n) in [
            ("served", served),
            ("shed", shed),
            ("gave_up", gave_up),
            ("failed", failed),
        ] {
            sample.put(metric, "1/s", n / self.counted.as_secs_f64());
        }
        sample.put_latencies("work", latencies);
        Ok(())
    }

    /// On a thread of its own, which sleeps by the kernel's timer: Tokio's counts in
    /// milliseconds, and an answer takes less.
    pub fn ask_health(self, url: &Uri) -> Result<Histogram<u64>, BoxError> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build()?;
        let client = Client::new();
        let mut latencies = empty_histogram();
        let counts_from = Instant::now() + self.warm_up;
        let end = counts_from + self.counted;
        let mut due = Instant::now();
        while due < end {
            tail::sleep_until(due);
            let answer = async { timeout_at((end + GRACE).into(), client.get(url)).await };
            // Of those that are due after it, too: the connection is taken.
            if let Ok(answer) = runtime.block_on(answer) {
                answer?;
            }
            if due >= counts_from {
                record(&mut latencies, due.elapsed());
            }
            due += EVERY;
        }
        Ok(latencies)
    }
}

/// How many requests a second are served if `clients` ask one after the other.
pub async fn capacity(url: Uri, clients: usize, lasts: Duration) -> Result<f64, BoxError> {
    let until = Instant::now() + lasts;
    let mut asking = JoinSet::new();
    for _ in 0..clients {
        let (client, url) = (Client::new(), url.clone());
        asking.spawn(async move {
            let mut served = 0_u32;
            while Instant::now() < until {
                let (status, _) = client.get(&url).await?;
                served += u32::from(status == StatusCode::OK);
            }
            Ok::<_, BoxError>(served)
        });
    }
    let served: Result<Vec<u32>, BoxError> = asking.join_all().await.into_iter().collect();
    Ok(f64::from(served?.iter().sum::<u32>()) / lasts.as_secs_f64())
}
