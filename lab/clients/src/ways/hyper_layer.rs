//! hyper-util's client: the same with `IoLayer` around it.

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use tower::{Layer, ServiceExt};
use twolane::io::{IoLayer, IoService};

use crate::BoxError;

type Http = Client<HttpConnector, Full<Bytes>>;

/// Once, beside the client.
pub fn layered(client: &Http, cpu: &twolane::Handle) -> IoService<Http> {
    IoLayer::new(cpu).layer(client.clone())
}

pub async fn page(client: &IoService<Http>, url: &Uri) -> Result<Bytes, BoxError> {
    let request = Request::get(url).body(Full::default())?;
    let response = client.clone().oneshot(request).await?;
    Ok(response.into_body().collect().await?.to_bytes())
}
