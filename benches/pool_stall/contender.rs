//! The contenders, and what makes each of them different.

use std::future::Future;

use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::{Client, RequestBuilder, Response};
use tokio::runtime::Handle;
use tower::BoxError;
use tower::util::MapFutureLayer;
use twolane::RequestBuilderExt;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Contender {
    Alone,
    Shared,
    Unpooled,
    TwoClients,
    Connector,
    Twolane,
    SafetyNet,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    /// With prior knowledge, and windows that are small enough to be used up: 2 MiB a stream, 4 MiB
    /// a connection, for every contender alike.
    Http2,
}

impl Contender {
    pub const ALL: [Self; 7] = [
        Self::Alone,
        Self::Shared,
        Self::Unpooled,
        Self::TwoClients,
        Self::Connector,
        Self::Twolane,
        Self::SafetyNet,
    ];

    /// The name in the JSON file.
    pub fn key(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Shared => "shared_client",
            Self::Unpooled => "unpooled",
            Self::TwoClients => "two_clients",
            Self::Connector => "connector_layer",
            Self::Twolane => "twolane_send_io",
            Self::SafetyNet => "twolane_send",
        }
    }

    pub fn client(self, protocol: Protocol, io: &Handle) -> reqwest::Result<Client> {
        let idle = if self == Self::Unpooled { 0 } else { 4 };
        let mut builder = Client::builder().no_proxy().pool_max_idle_per_host(idle);
        if self == Self::Connector {
            builder = builder.connector_layer(MapFutureLayer::new(spawn_on(io.clone())));
        }
        if protocol == Protocol::Http2 {
            builder = builder
                .http2_prior_knowledge()
                .http2_initial_stream_window_size(2 << 20)
                .http2_initial_connection_window_size(4 << 20);
        }
        builder.build()
    }

    /// How a CPU job of this contender sends its request.
    pub async fn send(self, request: RequestBuilder) -> Result<Response, BoxError> {
        match self {
            Self::Twolane => Ok(request.send_io().await?),
            _ => Ok(request.send().await?),
        }
    }
}

/// Makes each connect a task of this runtime. reqwest seals the type of a connect, hence the
/// parameters.
fn spawn_on<C, T>(
    runtime: Handle,
) -> impl FnMut(C) -> BoxFuture<'static, Result<T, BoxError>> + Clone
where
    C: Future<Output = Result<T, BoxError>> + Send + 'static,
    T: Send + 'static,
{
    move |connect| {
        let task = runtime.spawn(connect);
        async move { task.await? }.boxed()
    }
}

/// In the tables.
pub fn name(case: &str, side: Contender) -> String {
    format!("{case}/{}", side.key())
}
