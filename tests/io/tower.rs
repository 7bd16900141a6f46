//! `IoLayer` and the client in it: all of a request runs on the I/O lane, and what goes wrong is
//! told as it is.

use std::convert::Infallible;

use crate::clients::HyperClient;
use crate::server::Server;
use crate::support::{Lanes, lanes, on_both, thread_name, with_both};
use crate::watched::{Threads, Watched};
use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::TokioExecutor;
use tower::{Layer, ServiceExt};
use twolane::JoinError;
use twolane::io::IoLayer;

fn ask(url: &str) -> Request<Full<Bytes>> {
    Request::get(url).body(Full::default()).unwrap()
}

/// Readiness, the call, each poll of the response, and the connections with
/// their drivers, which the client starts by its executor.
#[test]
fn request_and_body_come_whole_and_all_of_it_runs_on_the_io_lane() {
    let doubled = |body: Bytes| async move { [&body[..], &body[..]].concat() };
    let server = Server::start(Router::new().route("/double", post(doubled)));
    // Under the limit of axum's extractor, over every buffer on the way.
    let long = Bytes::from((0..1 << 20_u32).map(|n| n as u8).collect::<Vec<_>>());
    let double = [&long[..], &long[..]].concat();
    let run = |Lanes { cpu, io: _io }, h2| {
        let threads = Threads::default();
        let client: HyperClient = Client::builder(threads.clone()).http2_only(h2).build_http();
        let client = IoLayer::new(&cpu.handle()).layer(Watched::new(client, &threads));
        for _ in 0..3 {
            let request = Request::post(server.url("/double"));
            let request = request.body(Full::new(long.clone())).unwrap();
            let client = client.clone();
            let job = cpu.spawn(async move {
                let response = client.oneshot(request).await.unwrap();
                assert_eq!(response.status(), StatusCode::OK);
                response.into_body().collect().await.unwrap().to_bytes()
            });
            assert!(job.wait().unwrap() == double);
        }
        let steps = ["poll_ready", "call", "response", "spawn", "task"];
        let all_on_io = steps.map(|step| (step, "io".to_owned()));
        assert_eq!(threads.seen(), all_on_io.into(), "h2: {h2}");
    };
    with_both(|backend| {
        [false, true]
            .into_iter()
            .for_each(|h2| run(lanes(backend, 1), h2))
    });
}

#[test]
fn the_client_s_own_error_arrives_as_it_is_and_a_panic_as_one() {
    on_both(1, |Lanes { cpu, io: _io }| {
        let layer = IoLayer::new(&cpu.handle());
        let client: HyperClient = Client::builder(TokioExecutor::new()).build_http();
        // Port 1: no server is there.
        let job = cpu.spawn(layer.layer(client).oneshot(ask("http://127.0.0.1:1/")));
        let error = job.wait().unwrap().unwrap_err();
        let own = error.downcast_ref::<legacy::Error>();
        assert!(own.unwrap().is_connect(), "{error:?}");

        let broken = tower::service_fn(|_| async {
            assert_eq!(thread_name(), "io");
            panic!("the client is broken");
            #[allow(unreachable_code, reason = "it says what the panic is instead of")]
            Ok::<Response<Full<Bytes>>, Infallible>(Response::default())
        });
        let job = cpu.spawn(layer.layer(broken).oneshot(ask("/")));
        let error = job.wait().unwrap().unwrap_err();
        let panic = error.downcast_ref::<JoinError>().unwrap();
        assert!(panic.is_panic());
        assert!(panic.to_string().contains("the client is broken"));
    });
}
