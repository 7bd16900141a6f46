//! A real S3 server, the service, and a client of it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::middleware::{Next, from_fn, map_request};
use axum::response::Response;
use futures::{StreamExt, TryStreamExt, stream};
use object_store_0_14::{Error, ObjectStore, ObjectStoreExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use twolane::CpuRuntime;
use twolane_s3::engine::contender::store_builder;
use twolane_s3::seen::Seen;
use twolane_s3::server::Server;

use crate::service;
use crate::support::{Lanes, lanes};
use crate::watched::{Counts, End, Watched};

pub type Answer = reqwest::Result<(u16, String)>;
type Chunks = mpsc::UnboundedSender<Bytes>;

pub struct Site {
    pub address: SocketAddr,
    pub counts: Arc<Counts>,
    pub ended: mpsc::UnboundedReceiver<End>,
    /// Requests whose handler was dropped before it had an answer.
    pub dropped_handlers: mpsc::UnboundedReceiver<()>,
    pub cpu: CpuRuntime,
    store: Arc<dyn ObjectStore>,
    client: reqwest::Client,
}

pub fn with_site(test: impl AsyncFn(&mut Site)) {
    let server = Server::start(Duration::ZERO).unwrap();
    let Lanes { cpu, io } = lanes(2);
    io.block_on(async {
        let mut site = Site::start(&server, cpu).await;
        test(&mut site).await;
    });
}

impl Site {
    async fn start(server: &Server, cpu: CpuRuntime) -> Self {
        let (counts, ended) = Counts::new();
        let store: Arc<dyn ObjectStore> = Arc::new(Seen {
            store: store_builder(&server.access()).build().unwrap(),
            by: Watched(counts.clone()),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let counted = counts.clone();
        let (dropped, dropped_handlers) = mpsc::unbounded_channel();
        let routes = service::routes(cpu.handle().clone(), store.clone())
            .layer(map_request(move |request| count(request, counted.clone())))
            .layer(from_fn(move |request, next| {
                watch(request, next, dropped.clone())
            }));
        tokio::spawn(axum::serve(listener, routes).into_future());
        Self {
            address,
            counts,
            ended,
            dropped_handlers,
            cpu,
            store,
            client: reqwest::Client::new(),
        }
    }

    pub fn post<B: Into<reqwest::Body>>(
        &self,
        path: &str,
        body: B,
    ) -> impl Future<Output = Answer> + Send + use<B> {
        let url = format!("http://{}/{path}", self.address);
        let answer = self.client.post(url).body(body).send();
        async {
            let answer = answer.await?;
            Ok((answer.status().as_u16(), answer.text().await?))
        }
    }

    /// Begins an upload, until the service has taken this. The rest is to be sent.
    pub async fn begin(&self, path: &str, chunk: Bytes) -> (JoinHandle<Answer>, Chunks) {
        let (send, mut chunks) = mpsc::unbounded_channel();
        let chunks = stream::poll_fn(move |cx| chunks.poll_recv(cx)).map(Ok::<_, io::Error>);
        let answer = tokio::spawn(self.post(path, reqwest::Body::wrap_stream(chunks)));
        let taken = self.counts.taken.load(SeqCst) + chunk.len();
        send.send(chunk).unwrap();
        while self.counts.taken.load(SeqCst) < taken {
            self.health().await;
        }
        (answer, send)
    }

    pub async fn health(&self) {
        let url = format!("http://{}/health", self.address);
        let answer = self.client.get(url).send().await.unwrap();
        assert_eq!(answer.text().await.unwrap(), "ok\n");
    }

    pub async fn object(&self, name: &str) -> Option<Vec<u8>> {
        match self.store.get(&name.into()).await {
            Ok(object) => Some(object.bytes().await.unwrap().into()),
            Err(Error::NotFound { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Counts what the service takes of a body.
async fn count(request: Request, counts: Arc<Counts>) -> Request {
    request.map(|body| {
        Body::from_stream(body.into_data_stream().inspect_ok(move |chunk: &Bytes| {
            counts.taken.fetch_add(chunk.len(), SeqCst);
        }))
    })
}

/// Reports a handler that is dropped before it has an answer.
async fn watch(request: Request, next: Next, dropped: mpsc::UnboundedSender<()>) -> Response {
    struct Unanswered(Option<mpsc::UnboundedSender<()>>);
    impl Drop for Unanswered {
        fn drop(&mut self) {
            if let Some(dropped) = &self.0 {
                let _ = dropped.send(());
            }
        }
    }
    let mut unanswered = Unanswered(Some(dropped));
    let response = next.run(request).await;
    unanswered.0 = None;
    response
}
