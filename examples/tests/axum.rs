//! The axum example answers as it says, and shuts down.

#[path = "../axum.rs"]
#[allow(dead_code, reason = "its `main` is not called")]
mod example;

use std::time::Duration;

use argon2::Argon2;
use argon2::password_hash::PasswordVerifier;
use argon2::password_hash::phc::PasswordHash;
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

    let register = format!("{url}/register");
    let hash = reqwest::Client::new().post(&register).body("correct horse");
    let hash = hash.send().await?.error_for_status()?.text().await?;
    assert!(is_of(hash.trim_end(), "correct horse"), "{hash}");
    assert!(!is_of(hash.trim_end(), "battery staple"), "{hash}");

    // Take every permit of the queue: now it is full.
    let permits: Vec<_> = std::iter::from_fn(|| lane.try_reserve().ok()).collect();
    assert_eq!(permits.len(), LIMIT);
    let shed = reqwest::Client::new()
        .post(&register)
        .body("staple")
        .send()
        .await?;
    assert_eq!(shed.status(), 503);
    assert_eq!(shed.headers()["retry-after"], "1");
    expect(&url, "/health", 200, "ok\n").await?;
    drop(permits);
    let completed =
        "twolane_jobs_total{lane=\"cpu\",priority=\"normal\",outcome=\"completed\"} 1\n";
    expect(&url, "/metrics", 200, completed).await?;
    expect(&url, "/call-sites", 200, "axum.rs:").await?;

    drop(stop);
    server.await??;
    assert!(reqwest::get(format!("{url}/health")).await.is_err());
    Ok(())
}

fn is_of(hash: &str, password: &str) -> bool {
    let hash = PasswordHash::new(hash).expect("a hash in PHC form");
    Argon2::default()
        .verify_password(password.as_bytes(), &hash)
        .is_ok()
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
