//! HTTP servers for the tests, each on a runtime of its own: they outlive the
//! I/O lane that is under test.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::get;
use bytes::Bytes;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::support::Dropped;

pub struct Server {
    pub address: SocketAddr,
    runtime: Runtime,
}

impl Server {
    /// HTTP/1.1 and HTTP/2, whichever the client begins with.
    pub fn start(router: Router) -> Self {
        Self::listen(|listener| async move {
            let service = router.into_make_service_with_connect_info::<SocketAddr>();
            axum::serve(listener, service).await.unwrap();
        })
    }

    /// One that does with each connection as it likes.
    pub fn raw<F>(answer: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::listen(|listener| async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(answer(stream));
            }
        })
    }

    fn listen<F>(serve: impl FnOnce(TcpListener) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("server")
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(serve(listener));
        Self { address, runtime }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Runs something on the server's side.
    pub fn spawn<F>(&self, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.runtime.spawn(future);
    }
}

/// A body that is written by hand. The writer sees an error, or
/// [`mpsc::Sender::closed`], once the server has let go of the body.
pub fn written_body() -> (mpsc::Sender<io::Result<Bytes>>, Body) {
    let (writer, mut chunks) = mpsc::channel(1);
    let body = futures::stream::poll_fn(move |cx| chunks.poll_recv(cx));
    (writer, Body::from_stream(body))
}

pub fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

pub fn h2_client() -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .http2_prior_knowledge()
        .build()
        .unwrap()
}

/// Answers nothing; tells when it was asked, and when its client has gone.
pub fn silent_server() -> (Server, Receiver<()>, Receiver<String>) {
    let (asked, requests) = channel();
    let (dropped, given_up) = channel();
    let silent = |State((asked, dropped)): State<(Sender<()>, Sender<String>)>| async move {
        let _guard = Dropped(dropped);
        asked.send(()).unwrap();
        pending::<()>().await
    };
    let router = Router::new().route("/", get(silent));
    let server = Server::start(router.with_state((asked, dropped)));
    (server, requests, given_up)
}
