//! Any client whose responses are `http::Response`s: `response_from_io`.

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use twolane::io::DEFAULT_BODY_LIMIT;
use twolane::{Handle, HandleExt};

use crate::BoxError;

pub async fn page(
    client: &Client<HttpConnector, Full<Bytes>>,
    url: &Uri,
) -> Result<Bytes, BoxError> {
    let request = client.request(Request::get(url).body(Full::default())?);
    let response = Handle::current().response_from_io(request, DEFAULT_BODY_LIMIT);
    Ok(response.await??.into_body().collect().await?.to_bytes())
}
