//! Requests for `/work`: a fixed number per second, whether or not the earlier ones are
//! answered; or one after the other, to find out how many the service can do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{StatusCode, Uri};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout_at};
use tower::BoxError;

use crate::client::{Client, Latencies};

/// How long a client waits from when its request was due.
const PATIENCE: Duration = Duration::from_secs(1);
/// So that a large machine does not run out of file descriptors. A request that
/// finds none of them free in its second is one that gave up.
const CONNECTIONS: usize = 800;

pub struct Load {
    pub per_second: f64,
    /// Not counted: pools fill, queues find their length.
    pub warm_up: Duration,
    pub counted: Duration,
}

/// What became of the requests that were due in the time that counts.
pub struct Outcome {
    pub served: u64,
    pub shed: u64,
    pub gave_up: u64,
    pub failed: u64,
    pub latencies: Latencies,
}

enum Answer {
    Status(StatusCode),
    GaveUp,
    Failed,
}

impl Load {
    pub async fn offer(&self, url: Uri) -> Result<Outcome, BoxError> {
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
        let mut outcome = Outcome::none();
        while let Some(asked) = asked.join_next().await {
            let (due, answer, took) = asked?;
            if due >= counts_from {
                outcome.note(&answer, took);
            }
        }
        Ok(outcome)
    }
}

impl Outcome {
    fn none() -> Self {
        Self {
            served: 0,
            shed: 0,
            gave_up: 0,
            failed: 0,
            latencies: Latencies::new(),
        }
    }

    fn note(&mut self, answer: &Answer, took: Duration) {
        match answer {
            Answer::Status(StatusCode::OK) => {
                self.served += 1;
                self.latencies.record(took);
            }
            Answer::Status(StatusCode::SERVICE_UNAVAILABLE) => self.shed += 1,
            Answer::GaveUp => self.gave_up += 1,
            Answer::Status(_) | Answer::Failed => self.failed += 1,
        }
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
