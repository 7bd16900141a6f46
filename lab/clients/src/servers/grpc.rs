//! gRPC: methods that answer with the time.

use axum::Router;
use axum::extract::Request as HttpRequest;
use axum::routing::{MethodRouter, post};
use bytes::Bytes;
use futures::StreamExt;
use futures::future::ready;
use futures::stream::BoxStream;
use hyper_util::service::TowerToHyperService;
use tonic::{Request, Response, Status, Streaming};
use twolane_grpc::{BytesCodec, unary};

use super::web::Web;
use crate::BoxError;
use crate::clock::now;

/// The methods.
pub mod path {
    /// One message, one answer.
    pub const UNARY: &str = "/clients/unary";
    /// A stream of messages, one answer when all have come.
    pub const UPLOAD: &str = "/clients/upload";
    /// An answer to each message of a stream.
    pub const BIDI: &str = "/clients/bidi";
}

pub(super) fn start() -> Result<Web, BoxError> {
    let router = Router::new()
        .route(path::UNARY, unary(|_| ready(Ok(time()))))
        .route(path::UPLOAD, upload())
        .route(path::BIDI, bidi());
    Web::start(TowerToHyperService::new(router))
}

fn time() -> Bytes {
    now().to_string().into()
}

fn upload() -> MethodRouter {
    post(|request: HttpRequest| async move {
        let method = tower::service_fn(|messages: Request<Streaming<Bytes>>| async {
            let mut messages = messages.into_inner();
            while messages.message().await?.is_some() {}
            Ok::<_, Status>(Response::new(time()))
        });
        tonic::server::Grpc::new(BytesCodec)
            .client_streaming(method, request)
            .await
    })
}

fn bidi() -> MethodRouter {
    post(|request: HttpRequest| async move {
        let method = tower::service_fn(|messages: Request<Streaming<Bytes>>| async {
            let answers = messages.into_inner().map(|message| message.map(|_| time()));
            let answers: BoxStream<'static, Result<Bytes, Status>> = answers.boxed();
            Ok::<_, Status>(Response::new(answers))
        });
        tonic::server::Grpc::new(BytesCodec)
            .streaming(method, request)
            .await
    })
}
