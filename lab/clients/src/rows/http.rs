//! HTTP clients with a pool of connections.

use bytes::Bytes;
use http::Uri;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::{Client as Legacy, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;

use super::Shows::JobPanics;
use super::build::{Rows, ask};
use super::{Client, Mark, World};
use crate::BoxError;
use crate::servers::Kind;
use crate::ways;

/// A client, and whom to ask.
type Reqwest = (reqwest::Client, String);
type Hyper = (Legacy<HttpConnector, Full<Bytes>>, Uri);

async fn plain((client, url): Reqwest) -> Result<i64, BoxError> {
    Ok(client.get(url).send().await?.text().await?.parse()?)
}

pub(super) fn reqwest() -> Client {
    let make = |world: World| async move {
        let client = reqwest::Client::builder().no_proxy().build()?;
        Ok((client, format!("http://{}", world.address)))
    };
    Rows::new("reqwest", Some(Kind::Http), make, |client| {
        ask(client, plain)
    })
    .tolerated("plain", |client, _| plain(client))
    .warned_in_cpu_context(JobPanics, |client, _| plain(client))
    .recommended("send_io", |(client, url): Reqwest, _| async move {
        Ok(ways::reqwest::page(&client, &url).await?.parse::<i64>()?)
    })
    .done()
}

async fn plainly((client, url): Hyper) -> Result<i64, BoxError> {
    let response = client.get(url).await?;
    time(&response.into_body().collect().await?.to_bytes())
}

fn time(page: &Bytes) -> Result<i64, BoxError> {
    Ok(std::str::from_utf8(page)?.parse()?)
}

/// With HTTP/2, so that all requests share one connection.
pub(super) fn hyper() -> Client {
    let make = |world: World| async move {
        let mut client = Legacy::builder(TokioExecutor::new());
        let client = client.http2_only(true).build(HttpConnector::new());
        Ok((client, format!("http://{}/", world.address).parse()?))
    };
    Rows::new("hyper", Some(Kind::Http), make, |client| {
        ask(client, plainly)
    })
    .tolerated("plain", |client, _| plainly(client))
    .way(
        "IoLayer",
        Mark::Recommended,
        |(client, url): Hyper, cpu| (ways::hyper_layer::layered(&client, cpu), url),
        |(client, url), _| async move { time(&ways::hyper_layer::page(&client, &url).await?) },
    )
    .recommended("response_from_io", |(client, url): Hyper, _| async move {
        time(&ways::hyper_response::page(&client, &url).await?)
    })
    .done()
}
