//! The axum example answers as it says, and shuts down.

#[path = "../axum.rs"]
#[allow(dead_code, reason = "its `main` is not called")]
mod example;

use std::time::Duration;

use example::{Error, LIMIT, cpu_lane, serve};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

#[tokio::test]
async fn computes_sheds_and_shuts_down() -> Result<(), Error> {
    let hangs = Duration::from_secs(60);
    tokio::time::timeout(hangs, check()).await?
}

async fn check() -> Result<(), Error> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let cpu = cpu_lane()?;
    let lane = cpu.handle();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(serve(listener, cpu, async { drop(stopped.await) }));

    expect(&url, "/primes/100", 200, "25 primes below 100\n").await?;
    // Take every permit of the queue: now it is full.
    let permits: Vec<_> = std::iter::from_fn(|| lane.try_admit().ok()).collect();
    assert_eq!(permits.len(), LIMIT);
    expect(&url, "/primes/100", 503, "").await?;
    expect(&url, "/health", 200, "ok\n").await?;
    drop(permits);
    expect(&url, "/primes/1000", 200, "168 primes below 1000\n").await?;
    let completed = "twolane_jobs_total{outcome=\"completed\",priority=\"normal\"} 2\n";
    expect(&url, "/metrics", 200, completed).await?;

    expect(&url, "/call-sites", 200, "axum.rs:").await?;

    drop(stop);
    server.await??;
    assert!(reqwest::get(format!("{url}/health")).await.is_err());
    Ok(())
}

async fn expect(url: &str, path: &str, status: u16, text: &str) -> Result<(), Error> {
    let response = reqwest::get(format!("{url}{path}")).await?;
    let found = response.status().as_u16();
    let body = response.text().await?;
    assert!(
        found == status && body.contains(text),
        "{path}: {found} {body}"
    );
    Ok(())
}
