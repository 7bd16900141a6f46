//! The contenders, and what makes each of them different.

use std::sync::Arc;

use reqwest::{Client, RequestBuilder, Response};
use tokio::runtime::Handle;
use twolane::RequestBuilderExt;

use crate::connector::{BoxError, ConnectOn, Connections, Probe};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

    pub fn title(self) -> &'static str {
        match self {
            Self::Alone => "(a) the io side alone",
            Self::Shared => "(b) two runtimes, one client",
            Self::Unpooled => "(c) the same, no pooling",
            Self::TwoClients => "(d) two runtimes, two clients",
            Self::Connector => "(e) connects moved to io",
            Self::Twolane => "(f) twolane, send_io()",
            Self::SafetyNet => "(g) twolane, plain send()",
        }
    }

    /// The client of the io side and that of the cpu side.
    pub fn clients(
        self,
        protocol: Protocol,
        connections: &Arc<Connections>,
        io: &Handle,
    ) -> Result<(Client, Client), BoxError> {
        let build = || -> Result<Client, BoxError> {
            let idle = if self == Self::Unpooled { 0 } else { 4 };
            let mut builder = Client::builder()
                .no_proxy()
                .pool_max_idle_per_host(idle)
                .connector_layer(Probe(Arc::clone(connections)));
            if self == Self::Connector {
                // Around the probe, so that the probe sees the thread that does the work.
                builder = builder.connector_layer(ConnectOn(io.clone()));
            }
            if protocol == Protocol::Http2 {
                builder = builder
                    .http2_prior_knowledge()
                    .http2_initial_stream_window_size(2 << 20)
                    .http2_initial_connection_window_size(4 << 20);
            }
            Ok(builder.build()?)
        };
        let io_client = build()?;
        let cpu_client = match self {
            Self::TwoClients => build()?,
            _ => io_client.clone(),
        };
        Ok((io_client, cpu_client))
    }

    /// How a CPU job of this contender sends its request.
    pub async fn send_from_cpu(self, request: RequestBuilder) -> Result<Response, BoxError> {
        match self {
            Self::Twolane => Ok(request.send_io().await?),
            _ => Ok(request.send().await?),
        }
    }
}
