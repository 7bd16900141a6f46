//! [`WatchLayer`]: the watch sees the polls of a whole service.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

use crate::future::Watched;
use crate::name::Name;
use crate::scope;

/// A `tower` layer that lets the watch see each request of a service, by
/// the name that a function gives.
///
/// # Examples
///
/// With axum, by its routes:
///
/// ```
/// # #[tokio::main] async fn main() {
/// use axum::Router;
/// use axum::extract::{MatchedPath, Request};
/// use axum::routing::get;
/// use stallwatch::{Watch, WatchLayer};
///
/// let watcher = Watch::new().start(&tokio::runtime::Handle::current()).unwrap();
/// let by_route = WatchLayer::new(|request: &Request| {
///     let route = request.extensions().get::<MatchedPath>();
///     format!("{} {}", request.method(), route.map_or("no route", |route| route.as_str())).into()
/// });
/// let app: Router = Router::new()
///     .route("/users/{id}", get(async || "someone"))
///     .route_layer(by_route);
/// # let _ = (app, watcher);
/// # }
/// ```
pub struct WatchLayer<R> {
    name: Arc<NameOf<R>>,
}

type NameOf<R> = dyn Fn(&R) -> Cow<'static, str> + Send + Sync;

impl<R> WatchLayer<R> {
    /// `name` is called for each request. It returns one of a limited number of names: the
    /// route, not the path. A name longer than 256 bytes is cut, and ends in `…`.
    pub fn new(name: impl Fn(&R) -> Cow<'static, str> + Send + Sync + 'static) -> Self {
        Self {
            name: Arc::new(name),
        }
    }
}

impl<R> Clone for WatchLayer<R> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
        }
    }
}

impl<R> fmt::Debug for WatchLayer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchLayer").finish_non_exhaustive()
    }
}

impl<R, S> Layer<S> for WatchLayer<R> {
    type Service = WatchService<R, S>;

    fn layer(&self, inner: S) -> WatchService<R, S> {
        WatchService {
            layer: self.clone(),
            inner,
        }
    }
}

/// The service that [`WatchLayer`] makes.
pub struct WatchService<R, S> {
    layer: WatchLayer<R>,
    inner: S,
}

impl<R, S: Clone> Clone for WatchService<R, S> {
    fn clone(&self) -> Self {
        Self {
            layer: self.layer.clone(),
            inner: self.inner.clone(),
        }
    }
}

impl<R, S> fmt::Debug for WatchService<R, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchService").finish_non_exhaustive()
    }
}

impl<R, S: Service<R>> Service<R> for WatchService<R, S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = Watched<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let name = Name::named(&(self.layer.name)(&request));
        // A handler may compute before its first `.await`, in the call itself.
        let _entered = scope::enter(name);
        Watched::at(self.inner.call(request), name)
    }
}
