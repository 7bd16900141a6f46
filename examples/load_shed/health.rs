//! What the load balancer sees: `/health`, asked every 5 ms on one connection.

use std::time::{Duration, Instant};

use http::Uri;
use tower::BoxError;

use crate::client::{Client, Latencies};

const EVERY: Duration = Duration::from_millis(5);
/// Requests without an answer that long after the end are recorded with the latency
/// that they have then.
const GRACE: Duration = Duration::from_millis(500);

/// On a thread of its own, which sleeps by the kernel's timer: Tokio's counts in
/// milliseconds, and an answer takes less.
pub fn ask(url: &Uri, warm_up: Duration, counted: Duration) -> Result<Latencies, BoxError> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build()?;
    let client = Client::new();
    let mut latencies = Latencies::new();
    let begun = Instant::now();
    let end = begun + warm_up + counted;
    let mut due = begun;
    while due < end {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let answer = async { tokio::time::timeout_at((end + GRACE).into(), client.get(url)).await };
        // Of those that are due after it, too: the connection is taken.
        if let Ok(answer) = runtime.block_on(answer) {
            answer?;
        }
        if due >= begun + warm_up {
            latencies.record(due.elapsed());
        }
        due += EVERY;
    }
    Ok(latencies)
}
