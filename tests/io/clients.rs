//! The two ways of a request over the lanes: reqwest's `send_io`, and a tower client under
//! `IoLayer`. What must hold for a request must hold for both.

use crate::server;
use crate::support::{Lanes, lanes};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tower::{BoxError, Layer, ServiceExt};
use twolane::io::{DEFAULT_BODY_LIMIT, IoLayer, SendIoError};
use twolane::{Handle, RequestBuilderExt};

pub(super) type HyperClient = legacy::Client<HttpConnector, Full<Bytes>>;
pub(super) type Answer = Result<Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError>;

#[derive(Clone, Debug)]
pub(super) enum Client {
    SendIo(reqwest::Client),
    IoLayer(Box<HyperClient>),
}

/// On a lane of one thread: each client, by HTTP/1.1 and by HTTP/2.
pub(super) fn with_each(mut test: impl FnMut(Lanes, Client)) {
    for h2 in [false, true] {
        println!("HTTP/2: {h2}");
        let hyper = legacy::Client::builder(TokioExecutor::new())
            .http2_only(h2)
            .build_http();
        let reqwest = match h2 {
            true => server::h2_client(),
            false => server::client(),
        };
        for client in [Client::SendIo(reqwest), Client::IoLayer(Box::new(hyper))] {
            println!("{client:?}");
            test(lanes(1), client);
        }
    }
}

impl Client {
    pub(super) fn get(&self, cpu: &Handle, url: String) -> BoxFuture<'static, Answer> {
        let request = Request::get(url).body(Bytes::new()).unwrap();
        self.send(cpu, request, DEFAULT_BODY_LIMIT)
    }

    pub(super) fn send(
        &self,
        cpu: &Handle,
        request: Request<Bytes>,
        limit: usize,
    ) -> BoxFuture<'static, Answer> {
        match self.clone() {
            Self::SendIo(client) => {
                let request = reqwest::Request::try_from(request).unwrap();
                let request = reqwest::RequestBuilder::from_parts(client, request);
                let sent = request.send_io().on(cpu).body_limit(limit).into_future();
                Box::pin(async {
                    let answer = sent.await.map_err(|error| match error {
                        SendIoError::Join(error) => BoxError::from(error),
                        error => error.into(),
                    });
                    let answer = Response::<reqwest::Body>::from(answer?);
                    Ok(answer.map(|body| body.map_err(BoxError::from).boxed_unsync()))
                })
            }
            Self::IoLayer(client) => {
                let client = IoLayer::new(cpu).body_limit(limit).layer(*client);
                let sent = client.oneshot(request.map(Full::new));
                Box::pin(async { Ok(sent.await?.map(BodyExt::boxed_unsync)) })
            }
        }
    }
}

/// All of the answer.
pub(super) async fn read(answer: BoxFuture<'static, Answer>) -> Result<Bytes, BoxError> {
    Ok(answer.await?.into_body().collect().await?.to_bytes())
}
