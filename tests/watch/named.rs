//! What the crate itself runs on the I/O lane has a name.

use std::convert::Infallible;

use crate::setting::watched;
use axum::http::{Request, Response};
use bytes::Bytes;
use http_body_util::Full;
use tower::{Layer, ServiceExt, service_fn};
use twolane::watch::Stall;

fn assert_is_at(stall: &Stall, line: u32) {
    let place = format!("named.rs:{line}");
    assert!(stall.culprit().unwrap().ends_with(&place), "{stall}");
}

#[test]
fn what_spawn_io_polls_is_named() {
    let watched = watched(2);
    let compute = watched.compute();
    let line = line!() + 1;
    let task = watched.cpu.handle().spawn_io(async move { compute() });
    watched.io.block_on(task).unwrap();
    let stall = watched.stalls.recv().unwrap();
    assert_is_at(&stall, line);
    assert!(stall.remedy().contains("spawn_cpu"), "{stall}");
    assert_eq!(watched.cpu.handle().watcher().unwrap().stalls(), 1);
}

/// A client on the I/O lane has the place where it was made.
#[test]
fn a_client_s_request_is_named() {
    let watched = watched(2);
    let compute = watched.compute();
    let line = line!() + 1;
    let layer = twolane::io::IoLayer::new(watched.cpu.handle());
    let client = layer.layer(service_fn(move |_: Request<()>| {
        let compute = compute.clone();
        async move {
            compute();
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("7"))))
        }
    }));
    let answer = watched.cpu.spawn(client.oneshot(Request::new(())));
    watched.io.block_on(answer).unwrap().unwrap();
    let stall = watched.stalls.recv().unwrap();
    assert_is_at(&stall, line);
}
