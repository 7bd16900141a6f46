//! `tenants`: who is asked for a token, who for patience, and who for neither.

use std::collections::HashMap;
use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt};
use reqwest::Client;
use twolane::CpuRuntime;

use crate::support::Lanes;
use crate::tenants::{Customer, MAX_JOBS, routes};
use crate::{busy, lanes_of, let_go, serve};

#[test]
fn a_flood_is_answered_with_429_and_the_others_are_served() {
    let Lanes { cpu: lane, io } = lanes_of(CpuRuntime::new);
    let customer = |name, pays| (format!("of-{name}"), Customer { name, pays });
    let customers = HashMap::from([customer("acme", false), customer("other", true)]);
    let url = io.block_on(serve(routes(lane.handle(), Arc::new(customers))));
    let client = Client::new();
    let compress = |token: &str| {
        let request = client.post(format!("{url}/compress"));
        let request = request.header("authorization", format!("Bearer {token}"));
        async { request.body("a page".repeat(1_000)).send().await.unwrap() }
    };
    let of_other = compress("of-other");
    io.block_on(async {
        assert_eq!(compress("of-nobody").await.status(), 401);

        // The threads are busy, so all jobs of the key queue.
        let busy = tokio::task::block_in_place(|| busy(lane.handle()));
        let accepted = usize::from(MAX_JOBS);
        let flood = (0..accepted + 10).map(|_| compress("of-acme"));
        let mut flood: FuturesUnordered<_> = flood.collect();
        for _ in 0..10 {
            let answer = flood.next().await.unwrap();
            assert_eq!(answer.status(), 429);
            assert_eq!(answer.headers()["retry-after"], "1");
        }
        let of_other = tokio::spawn(of_other);
        tokio::task::block_in_place(|| let_go(busy));
        assert_eq!(of_other.await.unwrap().status(), 200);
        while let Some(answer) = flood.next().await {
            assert_eq!(answer.status(), 200);
        }
    });
}
