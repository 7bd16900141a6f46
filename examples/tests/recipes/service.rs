//! The example `axum` answers as it says, and shuts down.

use argon2::Argon2;
use argon2::password_hash::PasswordVerifier;
use argon2::password_hash::phc::PasswordHash;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::axum_example::{cpu_lane, serve};
use crate::lanes_of;
use crate::support::{Full, Lanes};

#[test]
fn it_computes_sheds_and_shuts_down() {
    let Lanes { cpu, io } = lanes_of(cpu_lane);
    io.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let lane = cpu.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(serve(listener, cpu, async { drop(stopped.await) }));

        let register = async |password: &'static str| {
            let request = reqwest::Client::new().post(format!("{url}/register"));
            request.body(password).send().await.unwrap()
        };
        let hash = register("correct horse").await;
        assert_eq!(hash.status(), 200);
        let hash = hash.text().await.unwrap();
        assert!(is_of(hash.trim_end(), "correct horse"), "{hash}");
        assert!(!is_of(hash.trim_end(), "battery staple"), "{hash}");

        let completed =
            "twolane_jobs_total{lane=\"cpu\",priority=\"normal\",outcome=\"completed\"} 1\n";
        expect(&url, "/metrics", completed).await;
        let full = Full::of(&lane);
        let shed = register("staple").await;
        assert_eq!(shed.status(), 503);
        assert_eq!(shed.headers()["retry-after"], "1");
        expect(&url, "/health", "ok\n").await;
        full.end().await;
        expect(&url, "/call-sites", "axum.rs:").await;

        drop(stop);
        server.await.unwrap().unwrap();
        assert!(reqwest::get(format!("{url}/health")).await.is_err());
    });
}

fn is_of(hash: &str, password: &str) -> bool {
    let hash = PasswordHash::new(hash).expect("a hash in PHC form");
    let verified = Argon2::default().verify_password(password.as_bytes(), &hash);
    verified.is_ok()
}

async fn expect(url: &str, path: &str, text: &str) {
    let response = reqwest::get(format!("{url}{path}")).await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    let body = response.text().await.unwrap();
    assert!(body.contains(text), "{path}: {body}");
}
