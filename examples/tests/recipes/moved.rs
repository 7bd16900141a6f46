//! `from_spawn_blocking`: both routes give the same answers, and after the move a request that
//! is given up costs nothing.

use std::io::Read;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::IntoResponse;
use flate2::read::GzDecoder;
use futures::executor::block_on;
use reqwest::Client;

use crate::from_spawn_blocking::{LIMIT, after, before, cpu_lane, routes};
use crate::support::{Lanes, limit_this_thread};
use crate::{busy, fill, give_up, lanes_of, let_go, serve};

fn text() -> String {
    (0..50_000).map(|n| format!("{n}\n")).collect()
}

fn unzipped(bytes: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn both_give_the_same_answer() {
    let Lanes { cpu, io } = lanes_of(cpu_lane);
    let url = io.block_on(serve(routes(cpu.handle().clone())));
    io.block_on(async {
        for route in ["before", "after"] {
            let request = Client::new().post(format!("{url}/{route}")).body(text());
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), 200, "{route}");
            assert!(
                unzipped(&answer.bytes().await.unwrap()) == text(),
                "{route}"
            );
        }
        let permits = fill(cpu.handle());
        assert_eq!(permits.len(), LIMIT);
        let shed = Client::new().post(format!("{url}/after")).body("text");
        assert_eq!(shed.send().await.unwrap().status(), 503);
    });
}

#[test]
fn a_full_semaphore_is_a_503() {
    limit_this_thread();
    let limits = before::Limits {
        queue: std::sync::Arc::new(tokio::sync::Semaphore::new(0)),
        threads: std::sync::Arc::new(tokio::sync::Semaphore::new(1)),
    };
    let answer = block_on(before::gzip(State(limits), Bytes::from("text")));
    assert_eq!(answer.unwrap_err(), 503);
}

#[test]
fn a_queued_request_that_is_dropped_never_runs() {
    let Lanes { cpu, io } = lanes_of(cpu_lane);
    let lane = cpu.handle().clone();
    let running = busy(&lane);
    io.block_on(give_up(after::gzip(
        State(lane.clone()),
        Bytes::from("text"),
    )));
    let_go(running);
    cpu.shutdown().wait();
    let jobs = lane.metrics();
    assert_eq!(jobs.cancelled, 1);
    let handler = after::gzip(State(lane), Bytes::from("text"));
    let error = io.block_on(handler).unwrap_err();
    assert_eq!(error.into_response().status(), 503);
}
