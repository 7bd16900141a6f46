//! Requests to all routes, from a runtime of their own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use twolane_benches::current_thread_runtime;

use crate::routes::{INNOCENT, WRONG};

#[derive(Clone, Copy)]
pub struct Length {
    pub time: Duration,
    /// So many requests to the innocent, at least.
    pub innocent: u64,
}

const WARM_UP: Duration = Duration::from_millis(150);

/// For how much longer it goes on until all are reported. A throttled cgroup stops the watch for
/// most of each period: it needs some tries, usually 2 to 10 seconds of them.
const MORE: Duration = Duration::from_secs(60);

/// Returns how many requests the innocent routes have answered.
pub fn ask(address: SocketAddr, length: Length, are_all_reported: impl Fn() -> bool) -> u64 {
    current_thread_runtime().block_on(async {
        let client = reqwest::Client::builder()
            .pool_max_idle_per_host(64)
            .build();
        let client = client.expect("a client");
        let get = async move |client: &reqwest::Client, route: &str| {
            let answer = client.get(format!("http://{address}{route}")).send().await;
            answer
                .and_then(reqwest::Response::error_for_status)
                .expect("an answer");
        };
        let answered = Arc::new(AtomicU64::new(0));
        let mut tasks = tokio::task::JoinSet::new();
        for route in INNOCENT {
            for _ in 0..4 {
                let (client, answered) = (client.clone(), answered.clone());
                tasks.spawn(async move {
                    loop {
                        get(&client, route).await;
                        answered.fetch_add(1, Relaxed);
                    }
                });
            }
        }
        // The watch gets to know the workers meanwhile.
        tokio::time::sleep(WARM_UP).await;
        let began = Instant::now();
        while began.elapsed() < length.time
            || answered.load(Relaxed) < length.innocent
            || (began.elapsed() < length.time + MORE && !are_all_reported())
        {
            for (route, _) in WRONG {
                get(&client, route).await;
                // The innocent get on meanwhile.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            if began.elapsed() >= length.time && answered.load(Relaxed) < length.innocent {
                // What is left of the requests goes to the innocent alone.
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        }
        // On a full machine the last jobs of the CPU lane, which is niced, would take long.
        tasks.abort_all();
        while let Some(end) = tasks.join_next().await {
            let is_panic = end.is_err_and(|error| error.is_panic());
            assert!(!is_panic, "no client panics");
        }
        answered.load(Relaxed)
    })
}
