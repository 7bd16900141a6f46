//! The example `tokenize`: the ids are those of the text, and a full lane refuses large texts alone.

#[path = "../tokenize.rs"]
#[allow(dead_code, reason = "its `main` is not called")]
mod example;
#[path = "../../../crates/core/tests/support/mod.rs"]
mod support;

use example::{IN_PLACE, MAX_TEXT, cpu_lane, routes, tokenizer};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

#[test]
fn large_texts_are_jobs_and_small_ones_are_not() {
    let _limit = support::time_limit();
    Runtime::new().unwrap().block_on(async {
        let cpu = cpu_lane().unwrap();
        let lane = cpu.handle().clone();
        let jobs = || lane.metrics().completed;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/tokenize", listener.local_addr().unwrap());
        let known = tokenizer().unwrap();
        tokio::spawn(axum::serve(listener, routes(lane.clone(), known.clone())).into_future());
        let post = async |text: &str| {
            let request = reqwest::Client::new().post(&url).body(text.to_owned());
            request.send().await.unwrap()
        };
        let small = "Ein kleiner Text. 小さい";
        let large = "A runtime serves input and output. ".repeat(1_000);
        assert!(small.len() <= IN_PLACE && large.len() > IN_PLACE);
        for (text, of_jobs) in [("", 0), (small, 0), (&large, 1)] {
            let before = jobs();
            let answer = post(text).await;
            assert_eq!(answer.status(), 200);
            let ids: Vec<u32> = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
            assert_eq!(ids, known.encode(text, false).unwrap().get_ids());
            assert_eq!(jobs() - before, of_jobs);
        }
        let full = support::Full::of(&lane);
        let refused = post(&large).await;
        assert_eq!(refused.status(), 503);
        assert!(refused.headers().contains_key("retry-after"));
        assert_eq!(post(small).await.status(), 200);
        full.end().await;
        assert_eq!(post(&large).await.status(), 200);
        assert_eq!(post(&"x".repeat(MAX_TEXT + 1)).await.status(), 413);
    });
}
