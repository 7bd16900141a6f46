//! A contender as a process of its own, and an HTTP client of it, as small as there is one: it
//! shares the cores with the server.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use bytes::Bytes;
use http::{StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tower::BoxError;
use twolane_benches::child::{self, Killed};

use crate::server::Server;

/// Killed when dropped.
pub struct Running {
    _child: Killed,
    url: String,
}

impl Running {
    pub fn start(server: &Server) -> Result<Self, BoxError> {
        let mut child = Killed(child::command(server).stdout(Stdio::piped()).spawn()?);
        let stdout = child.0.stdout.take().expect("it is piped");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let port = line.split_whitespace().nth(1);
        let port = port.ok_or("the server did not start")?;
        Ok(Self {
            url: format!("http://127.0.0.1:{port}"),
            _child: child,
        })
    }

    pub fn url(&self, path: &str) -> Uri {
        let url = format!("{}{path}", self.url);
        url.parse().expect("it is made of a port and a path")
    }
}

#[derive(Clone)]
pub struct Client(legacy::Client<HttpConnector, Empty<Bytes>>);

impl Client {
    pub fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self(legacy::Client::builder(TokioExecutor::new()).build(connector))
    }

    /// With all of the body, so that the connection is free again.
    pub async fn get(&self, url: &Uri) -> Result<(StatusCode, Bytes), BoxError> {
        let response = self.0.get(url.clone()).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, body))
    }
}
