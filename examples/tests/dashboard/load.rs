//! The load: calm, then more than the lane takes, then calm again, with all that can
//! happen to a job.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use reqwest::Client;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep_until, timeout};

use crate::service::Error;

/// Thirds of the time.
const CALM: Range<u32> = 0..3;
const CROWD: Range<u32> = 1..2;
/// Milliseconds after which a client leaves.
const STAYS: u64 = 60_000;
const LEAVES: u64 = 10;

/// A path, how many requests a second, when, and for how long each waits.
const VISITORS: [(&str, u32, Range<u32>, u64); 9] = [
    ("work/normal/3", 12, CALM, STAYS),
    ("work/high/1", 8, CALM, STAYS),
    ("work/low/20", 10, CALM, STAYS),
    ("panic", 2, CALM, STAYS),
    ("digest", 2, CALM, STAYS),
    ("report", 1, CALM, STAYS),
    // The job is still queued, or runs: its client has gone.
    ("work/normal/40", 3, CALM, LEAVES),
    ("work/normal/15/within/5", 40, CROWD, STAYS),
    ("work/normal/8", 400, CROWD, STAYS),
];

/// Each visitor sends a request whenever one is due, whatever becomes of the others.
pub(crate) async fn put(service: SocketAddr, time: Duration) -> Result<(), Error> {
    let (begin, client) = (Instant::now(), Client::new());
    let mut visitors = JoinSet::new();
    for (path, a_second, thirds, patience) in VISITORS {
        let (url, client) = (format!("http://{service}/{path}"), client.clone());
        visitors.spawn(async move {
            sleep_until(begin + time * thirds.start / 3).await;
            // No divisor of a second: else each sample of the metrics, one a second, could come
            // when no request is under way.
            let mut due = interval(Duration::from_millis(930) / a_second);
            let mut requests = JoinSet::new();
            while Instant::now() < begin + time * thirds.end / 3 {
                due.tick().await;
                let request = client.get(&url).send();
                let answer = async { request.await?.bytes().await };
                requests.spawn(timeout(Duration::from_millis(patience), answer));
                while requests.try_join_next().is_some() {}
            }
        });
    }
    while let Some(ended) = visitors.join_next().await {
        ended?;
    }
    Ok(())
}
