//! gRPC without generated code: messages are plain bytes, both ends by hand.

use axum::extract::Request as HttpRequest;
use axum::routing::{MethodRouter, post};
use bytes::{Buf, BufMut, Bytes};
use futures::stream::{BoxStream, Stream};
use http::uri::PathAndQuery;
use tonic::client::{Grpc, GrpcService};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Request, Response, Status, Streaming};

pub mod abort;

#[derive(Clone, Copy, Debug, Default)]
pub struct BytesCodec;

impl Codec for BytesCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(item);
        Ok(())
    }
}

impl Decoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// A method with one answer, as a route.
pub fn unary<F>(answer: impl Fn(Bytes) -> F + Clone + Send + Sync + 'static) -> MethodRouter
where
    F: Future<Output = Result<Bytes, Status>> + Send + 'static,
{
    post(move |request: HttpRequest| async move {
        let method = tower::service_fn(|message: Request<Bytes>| {
            let answer = answer(message.into_inner());
            async { answer.await.map(Response::new) }
        });
        tonic::server::Grpc::new(BytesCodec)
            .unary(method, request)
            .await
    })
}

/// A method with a stream of answers, as a route.
pub fn server_streaming(
    answers: impl Fn(Bytes) -> BoxStream<'static, Result<Bytes, Status>> + Clone + Send + Sync + 'static,
) -> MethodRouter {
    post(move |request: HttpRequest| async move {
        let method = tower::service_fn(|message: Request<Bytes>| {
            let answers = answers(message.into_inner());
            async { Ok::<_, Status>(Response::new(answers)) }
        });
        tonic::server::Grpc::new(BytesCodec)
            .server_streaming(method, request)
            .await
    })
}

/// A method with a stream of messages and one answer, as a route.
pub fn client_streaming<F>(
    answer: impl Fn(Streaming<Bytes>) -> F + Clone + Send + Sync + 'static,
) -> MethodRouter
where
    F: Future<Output = Result<Bytes, Status>> + Send + 'static,
{
    post(move |request: HttpRequest| async move {
        let method = tower::service_fn(|messages: Request<Streaming<Bytes>>| {
            let answer = answer(messages.into_inner());
            async { answer.await.map(Response::new) }
        });
        tonic::server::Grpc::new(BytesCodec)
            .client_streaming(method, request)
            .await
    })
}

/// A method with a stream of messages and a stream of answers, as a route.
pub fn bidirectional(
    answers: impl Fn(Streaming<Bytes>) -> BoxStream<'static, Result<Bytes, Status>>
    + Clone
    + Send
    + Sync
    + 'static,
) -> MethodRouter {
    post(move |request: HttpRequest| async move {
        let method = tower::service_fn(|messages: Request<Streaming<Bytes>>| {
            let answers = answers(messages.into_inner());
            async { Ok::<_, Status>(Response::new(answers)) }
        });
        tonic::server::Grpc::new(BytesCodec)
            .streaming(method, request)
            .await
    })
}

/// Calls a method with one answer.
pub async fn call<S>(service: S, path: &'static str, message: Bytes) -> Result<Bytes, Status>
where
    S: GrpcService<tonic::body::Body>,
    S::ResponseBody: Send + 'static,
    <S::ResponseBody as http_body::Body>::Error: Into<BoxError>,
{
    let mut client = ready(service).await?;
    let path = PathAndQuery::from_static(path);
    let response = client.unary(Request::new(message), path, BytesCodec).await;
    response.map(Response::into_inner)
}

/// Calls a method with a stream of answers.
pub async fn stream<S>(
    service: S,
    path: &'static str,
    message: Bytes,
) -> Result<Streaming<Bytes>, Status>
where
    S: GrpcService<tonic::body::Body>,
    S::ResponseBody: Send + 'static,
    <S::ResponseBody as http_body::Body>::Error: Into<BoxError>,
{
    let mut client = ready(service).await?;
    let path = PathAndQuery::from_static(path);
    let request = Request::new(message);
    let response = client.server_streaming(request, path, BytesCodec).await;
    response.map(Response::into_inner)
}

/// Calls a method with a stream of messages and one answer.
pub async fn upload<S, M>(
    service: S,
    path: &'static str,
    messages: Request<M>,
) -> Result<Bytes, Status>
where
    S: GrpcService<tonic::body::Body>,
    S::ResponseBody: Send + 'static,
    <S::ResponseBody as http_body::Body>::Error: Into<BoxError>,
    M: Stream<Item = Bytes> + Send + 'static,
{
    let mut client = ready(service).await?;
    let path = PathAndQuery::from_static(path);
    let response = client.client_streaming(messages, path, BytesCodec).await;
    response.map(Response::into_inner)
}

/// Calls a method with a stream of messages and a stream of answers.
pub async fn converse<S, M>(
    service: S,
    path: &'static str,
    messages: Request<M>,
) -> Result<Streaming<Bytes>, Status>
where
    S: GrpcService<tonic::body::Body>,
    S::ResponseBody: Send + 'static,
    <S::ResponseBody as http_body::Body>::Error: Into<BoxError>,
    M: Stream<Item = Bytes> + Send + 'static,
{
    let mut client = ready(service).await?;
    let path = PathAndQuery::from_static(path);
    let response = client.streaming(messages, path, BytesCodec).await;
    response.map(Response::into_inner)
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// As generated clients do.
async fn ready<S: GrpcService<tonic::body::Body>>(service: S) -> Result<Grpc<S>, Status> {
    let mut client = Grpc::new(service);
    let ready = client.ready().await;
    ready.map_err(|error| Status::unknown(format!("not ready: {}", error.into())))?;
    Ok(client)
}
