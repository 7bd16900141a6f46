//! What reqwest alone has: a response with more than an `http::Response`, and a call that finds its
//! handle by itself.

use std::sync::mpsc;
use std::time::Duration;

use crate::server::{Server, client, h2_client, silent_server};
use crate::support::{Lanes, lanes, thread_name};
use axum::Router;
use axum::http::StatusCode;
use axum::response::Redirect;
use axum::routing::get;
use reqwest::Version;
use twolane::RequestBuilderExt;
use twolane::io::SendIoError;

/// `url()` after a redirect is what relative links are resolved by; reqwest
/// keeps it outside the `http::Response`, where a rebuilt one loses it.
#[test]
fn the_head_survives() {
    let plain = || async { (StatusCode::ACCEPTED, [("x-kind", "plain")], "hello") };
    let redirect = || async { Redirect::temporary("/plain") };
    let router = Router::new().route("/plain", get(plain));
    let server = Server::start(router.route("/redirect", get(redirect)));
    let Lanes { cpu, io: _io } = lanes(1);
    for (client, version) in [(client(), Version::HTTP_11), (h2_client(), Version::HTTP_2)] {
        let request = client.get(server.url("/redirect"));
        let response = cpu.spawn(async { request.send_io().await }).wait();
        let response = response.unwrap().unwrap();
        assert_eq!(response.url().as_str(), server.url("/plain"));
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        assert_eq!(response.version(), version);
        assert_eq!(response.headers()["x-kind"], "plain");
        // It is kept in an extension.
        assert_eq!(response.remote_addr(), Some(server.address));
        assert_eq!(response.content_length(), Some(5));
        let body = cpu.spawn(response.bytes()).wait().unwrap();
        assert_eq!(body.unwrap(), "hello");
    }
}

#[test]
fn reqwest_s_own_errors_come_as_they_are() {
    let (server, _requests, _given_up) = silent_server();
    let Lanes { cpu, io: _io } = lanes(1);
    let request = client().get(server.url("/"));
    let request = request.timeout(Duration::from_millis(50));
    let sent = cpu.spawn(async { request.send_io().await }).wait();
    let error = sent.unwrap().unwrap_err();
    assert!(matches!(error, SendIoError::Request(_)));
    assert!(error.as_reqwest().unwrap().is_timeout(), "{error:?}");
}

/// Where to send it is asked at the first poll; and said, if there is nowhere. (That the I/O lane is
/// gone: `crossing.rs`.)
#[test]
fn it_needs_a_handle() {
    let server = Server::start(Router::new().route("/", get(|| async { "hello" })));
    let Lanes { cpu, io: _io } = lanes(1);
    let handle = cpu.handle().clone();
    // A runtime without any I/O of its own will do.
    let elsewhere = tokio::runtime::Builder::new_current_thread();
    let elsewhere = { elsewhere }.build().unwrap();
    let request = || client().get(server.url("/")).send_io();

    let error = elsewhere.block_on(request().into_future()).unwrap_err();
    assert!(matches!(error, SendIoError::NoCurrentHandle(_)));
    assert!(error.to_string().contains("Handle::enter"));

    let text = elsewhere.block_on(async { request().on(&handle).await.unwrap().text().await });
    assert_eq!(text.unwrap(), "hello");
    let before = request();
    let entered = handle.enter();
    let text = elsewhere.block_on(async { before.await.unwrap().text().await });
    assert_eq!(text.unwrap(), "hello");
    drop(entered);
}

struct Resolver(std::net::SocketAddr, mpsc::Sender<String>);

impl reqwest::dns::Resolve for Resolver {
    fn resolve(&self, _name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let (address, seen) = (self.0, self.1.clone());
        Box::pin(async move {
            seen.send(thread_name()).unwrap();
            Ok(Box::new(std::iter::once(address)) as reqwest::dns::Addrs)
        })
    }
}

/// From its first poll on: a connection that a job's thread resolves or opens waits for that thread's
/// next idle moment.
#[test]
fn the_name_is_resolved_on_the_io_lane() {
    let server = Server::start(Router::new().route("/", get(async || "hello")));
    let Lanes { cpu, io: _io } = lanes(1);
    let (resolves, resolved_on) = mpsc::channel();
    let client = reqwest::Client::builder().no_proxy();
    let client = client.dns_resolver(Resolver(server.address, resolves));
    let url = format!("http://somewhere.test:{}/", server.address.port());
    let request = client.build().unwrap().get(url);
    let job = cpu.spawn(async { request.send_io().await.unwrap().text().await.unwrap() });
    assert_eq!(job.wait().unwrap(), "hello");
    assert_eq!(resolved_on.try_iter().collect::<Vec<_>>(), ["io"]);
}
