//! An I/O handle as what hyper takes to spawn futures.

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::net::TcpListener;

use crate::support::{Stuck, lanes};

/// A pooled client that a job calls: its connections are tasks of the I/O lane.
#[test]
fn hypers_client_has_its_connections_on_the_io_lane() {
    let (cpu, lanes) = lanes(1).and_handle();
    let app = axum::Router::new().route("/", axum::routing::get(|| async { "answer" }));
    let io = &lanes.io;
    let listener = io.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    io.spawn(async move { axum::serve(listener, app).await });
    let client: Client<HttpConnector, Empty<Bytes>> = Client::builder(cpu.io()).build_http();
    let stuck = Stuck::start(&cpu);
    // The lane's only thread is busy, and the client gets its answer.
    let body = lanes.io.block_on(async {
        let answer = client.get(url.parse().unwrap()).await.unwrap();
        answer.into_body().collect().await.unwrap().to_bytes()
    });
    assert_eq!(body, "answer");
    stuck.end();
}
