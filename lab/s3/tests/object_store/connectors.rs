//! The connector inside ours may be any.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use http_body_util::BodyExt;
use hyper_util::client::legacy::{Client, connect};
use hyper_util::rt::TokioExecutor;
use tokio::runtime::Handle;

use super::object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use super::object_store::{ClientOptions, Result};
use super::store::{Site, get, retries, store_by};
use crate::support::{Lanes, lanes, thread_name};

/// hyper's own client, which writes down the thread that calls it.
#[derive(Clone, Debug, Default)]
struct Hyper {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    connected_in: Vec<tokio::runtime::Id>,
    called_on: Vec<String>,
    polled_on: Vec<String>,
}

impl HttpConnector for Hyper {
    fn connect(&self, _: &ClientOptions) -> Result<HttpClient> {
        let runtime = Handle::current().id();
        self.seen.lock().unwrap().connected_in.push(runtime);
        let client = Client::builder(TokioExecutor::new()).build(connect::HttpConnector::new());
        let seen = self.seen.clone();
        Ok(HttpClient::new(HyperService { client, seen }))
    }
}

#[derive(Debug)]
struct HyperService {
    client: Client<connect::HttpConnector, HttpRequestBody>,
    seen: Arc<Mutex<Seen>>,
}

#[async_trait]
impl HttpService for HyperService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.seen.lock().unwrap().called_on.push(thread_name());
        let response = self.client.request(request).await;
        let response = response.map_err(|error| HttpError::new(HttpErrorKind::Connect, error))?;
        let seen = self.seen.clone();
        Ok(response.map(|body| {
            let body = body.map_frame(move |frame| {
                seen.lock().unwrap().polled_on.push(thread_name());
                frame
            });
            HttpResponseBody::new(
                body.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error)),
            )
        }))
    }
}

#[test]
fn any_connector_is_called_on_the_io_lane_and_only_there() {
    let site = Site::new(300_000);
    let Lanes { cpu, io } = lanes(1);
    let inner = Hyper::default();
    let seen = inner.seen.clone();
    // This thread is in no runtime: a client that looks for one finds it.
    let connector = twolane::io::IoConnector::new(inner, cpu.handle());
    let store = store_by(connector, &site.access(), retries(0), ClientOptions::new());
    let got = cpu.spawn(async move { get(&store).await }).wait().unwrap();
    assert!(got.unwrap() == site.content);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.connected_in, [io.handle().id()]);
    assert_eq!(seen.called_on, ["io"]);
    assert!(!seen.polled_on.is_empty());
    assert!(seen.polled_on.iter().all(|name| name == "io"), "{seen:?}");
}
