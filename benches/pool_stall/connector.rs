//! Which runtime opened each connection: layers around reqwest's connector.
//!
//! reqwest seals the types of its connector, so the layers are generic over them: what is asked of
//! a connection is hyper-util's public `Connection` alone.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use hyper::http::Extensions;
use hyper_util::client::legacy::connect::{Connection, HttpInfo};
use tokio::runtime::Handle;
use tower::{Layer, Service};

use crate::lane::Lane;
use crate::reactor::Reactors;

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Connecting<C, E> = Pin<Box<dyn Future<Output = Result<C, E>> + Send>>;

/// Which runtime opened a connection.
#[derive(Clone, Copy)]
pub struct Opened {
    /// The lane whose thread polled the connect to its end.
    pub by: Lane,
    /// The lane whose reactor its socket is registered with.
    pub reactor_of: Lane,
}

/// The connections that the clients of one round opened, by local port.
pub struct Connections {
    opened: Mutex<HashMap<u16, Opened>>,
    reactors: Reactors,
}

impl Connections {
    pub fn new(reactors: Reactors) -> Arc<Self> {
        Arc::new(Self {
            opened: Mutex::default(),
            reactors,
        })
    }

    pub fn opened(&self, local_port: u16) -> Opened {
        let unknown = Opened {
            by: Lane::Unknown,
            reactor_of: Lane::Unknown,
        };
        let opened = self.opened.lock().unwrap();
        opened.get(&local_port).copied().unwrap_or(unknown)
    }

    fn note(&self, connection: &impl Connection, reactor_of: Option<Lane>) {
        let mut extras = Extensions::new();
        connection.connected().get_extras(&mut extras);
        if let Some(info) = extras.get::<HttpInfo>() {
            let opened = Opened {
                by: Lane::of_current_thread(),
                reactor_of: reactor_of.unwrap_or(Lane::Unknown),
            };
            let port = info.local_addr().port();
            self.opened.lock().unwrap().insert(port, opened);
        }
    }
}

/// Notes each connection that comes out of the connector below.
#[derive(Clone)]
pub struct Probe(pub Arc<Connections>);

#[derive(Clone)]
pub struct Probed<S> {
    inner: S,
    connections: Arc<Connections>,
}

impl<S> Layer<S> for Probe {
    type Service = Probed<S>;

    fn layer(&self, inner: S) -> Probed<S> {
        Probed {
            inner,
            connections: Arc::clone(&self.0),
        }
    }
}

impl<S, R> Service<R> for Probed<S>
where
    S: Service<R>,
    S::Response: Connection,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Connecting<S::Response, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, target: R) -> Self::Future {
        let mut connecting = Box::pin(self.inner.call(target));
        let connections = Arc::clone(&self.connections);
        let mut reactor_of = None;
        Box::pin(poll_fn(move |cx| {
            let mut poll = || connecting.as_mut().poll(cx);
            let output = if reactor_of.is_some() {
                poll()
            } else {
                let (output, lane) = connections.reactors.watch(poll);
                reactor_of = lane;
                output
            };
            if let Poll::Ready(Ok(connection)) = &output {
                connections.note(connection, reactor_of);
            }
            output
        }))
    }
}

/// Runs each connect as a task of one runtime: contender (e), the cure that is not enough.
#[derive(Clone)]
pub struct ConnectOn(pub Handle);

#[derive(Clone)]
pub struct ConnectedOn<S> {
    inner: S,
    runtime: Handle,
}

impl<S> Layer<S> for ConnectOn {
    type Service = ConnectedOn<S>;

    fn layer(&self, inner: S) -> ConnectedOn<S> {
        ConnectedOn {
            inner,
            runtime: self.0.clone(),
        }
    }
}

impl<S, R> Service<R> for ConnectedOn<S>
where
    S: Service<R, Error = BoxError>,
    S::Response: Send + 'static,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Connecting<S::Response, BoxError>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, target: R) -> Self::Future {
        let task = self.runtime.spawn(self.inner.call(target));
        Box::pin(async move { task.await? })
    }
}
