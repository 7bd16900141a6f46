//! Stores of one version of object_store, and readers of them.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;

use super::object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use super::object_store::client::{HttpConnector, ReqwestConnector};
use super::object_store::path::Path;
use super::object_store::{
    BackoffConfig, ClientOptions, GetResult, ObjectStoreExt, Result, RetryConfig,
};
use crate::support::limit_this_thread;
use twolane_s3::faults::Proxy;
use twolane_s3::server::{Access, Server};

/// Retries that need not wait.
pub(super) fn retries(max: usize) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(1),
            max_backoff: Duration::from_millis(5),
            base: 2.0,
        },
        max_retries: max,
        retry_timeout: Duration::from_secs(60),
    }
}

pub(super) fn store_by(
    connector: impl HttpConnector,
    access: &Access,
    retry: RetryConfig,
    options: ClientOptions,
) -> Arc<AmazonS3> {
    let mut builder = AmazonS3Builder::new()
        .with_http_connector(connector)
        .with_client_options(options)
        .with_retry(retry);
    for (key, value) in access.config() {
        if let Ok(key) = key.parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    Arc::new(builder.build().unwrap())
}

pub(super) fn io_connector(cpu: &twolane::Handle) -> twolane::io::IoConnector<ReqwestConnector> {
    twolane::io::IoConnector::new(ReqwestConnector::default(), cpu)
}

/// One whose requests are on the I/O lane.
pub(super) fn store(access: &Access, cpu: &twolane::Handle, retry: RetryConfig) -> Arc<AmazonS3> {
    store_by(io_connector(cpu), access, retry, ClientOptions::new())
}

/// A server that has one object, behind a proxy.
pub(super) struct Site {
    // Before the server that it leads to.
    pub(super) proxy: Proxy,
    pub(super) server: Server,
    pub(super) content: Vec<u8>,
}

impl Site {
    pub(super) fn new(bytes: usize) -> Self {
        limit_this_thread();
        let server = Server::start(Duration::ZERO).unwrap();
        let proxy = Proxy::before(server.address());
        let content = content(bytes);
        let site = Self {
            proxy,
            server,
            content,
        };
        site.put(&object(), &site.content);
        site
    }

    /// Not by way of the proxy, nor of us.
    pub(super) fn put(&self, path: &Path, content: &[u8]) {
        let direct = store_by(
            ReqwestConnector::default(),
            &self.server.access(),
            retries(0),
            ClientOptions::new(),
        );
        wait(direct.put(path, content.to_vec().into())).unwrap();
    }

    pub(super) fn access(&self) -> Access {
        self.server.access_by(self.proxy.address())
    }
}

pub(super) fn object() -> Path {
    Path::from("object")
}

/// Bytes that tell where they belong.
pub(super) fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n ^ n >> 8 ^ n >> 16) as u8).collect()
}

/// Reads on a runtime that belongs to neither lane.
pub(super) fn wait<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

pub(super) async fn get(store: &AmazonS3) -> Result<Vec<u8>> {
    let got = store.get(&object()).await?.bytes().await?;
    Ok(got.into())
}

/// Reads all of it; tells when it has the first bytes.
pub(super) async fn read(got: GetResult, begun: impl FnOnce()) -> Result<Vec<u8>> {
    let mut chunks = got.into_stream();
    let mut all = Vec::new();
    if let Some(chunk) = chunks.try_next().await? {
        all.extend_from_slice(&chunk);
        begun();
    }
    while let Some(chunk) = chunks.try_next().await? {
        all.extend_from_slice(&chunk);
    }
    Ok(all)
}
