//! Calls with streams of messages, as generated clients make them.

use bytes::Bytes;
use futures::Stream;
use http::uri::PathAndQuery;
use tonic::body::Body;
use tonic::client::{Grpc, GrpcService};
use tonic::{Request, Response, Status, Streaming};
use twolane_grpc::BytesCodec;

use crate::BoxError;
use crate::servers::path;

pub async fn upload<S>(
    service: S,
    messages: Request<impl Stream<Item = Bytes> + Send + 'static>,
) -> Result<Response<Bytes>, Status>
where
    S: GrpcService<Body, ResponseBody: Send + 'static>,
    <S::ResponseBody as http_body::Body>::Error: Into<BoxError>,
{
    let mut client = ready(service).await?;
    let path = PathAndQuery::from_static(path::UPLOAD);
    client.client_streaming(messages, path, BytesCodec).await
}

pub async fn bidi<S>(
    service: S,
    messages: Request<impl Stream<Item = Bytes> + Send + 'static>,
) -> Result<Response<Streaming<Bytes>>, Status>
where
    S: GrpcService<Body, ResponseBody: Send + 'static>,
    <S::ResponseBody as http_body::Body>::Error: Into<BoxError>,
{
    let mut client = ready(service).await?;
    let path = PathAndQuery::from_static(path::BIDI);
    client.streaming(messages, path, BytesCodec).await
}

async fn ready<S: GrpcService<Body>>(service: S) -> Result<Grpc<S>, Status> {
    let mut client = Grpc::new(service);
    let ready = client.ready().await;
    ready.map_err(|error| Status::unknown(format!("not ready: {}", error.into())))?;
    Ok(client)
}
