//! [`WatchLayer`]: the watch sees the polls of a whole service.

use std::borrow::Cow;
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
#[derive(Clone, Debug)]
pub struct WatchLayer<F> {
    name: F,
}

impl<F> WatchLayer<F> {
    /// `name` is called for each request. It returns one of a limited number of names: the
    /// route, not the path. A name longer than 256 bytes is cut, and ends in `…`.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::WatchLayer;
    ///
    /// struct Job {
    ///     kind: &'static str,
    /// }
    /// let by_kind = WatchLayer::new(|job: &Job| job.kind.into());
    /// # let _ = by_kind;
    /// ```
    pub fn new<R>(name: F) -> Self
    where
        F: Fn(&R) -> Cow<'static, str>,
    {
        Self { name }
    }
}

impl<F: Clone, S> Layer<S> for WatchLayer<F> {
    type Service = WatchService<F, S>;

    fn layer(&self, inner: S) -> WatchService<F, S> {
        let name = self.name.clone();
        WatchService { name, inner }
    }
}

/// The service that [`WatchLayer`] makes.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use std::convert::Infallible;
/// use stallwatch::{WatchLayer, WatchService};
/// use tower::{Layer, ServiceExt, service_fn};
///
/// let double = service_fn(async |n: u32| Ok::<_, Infallible>(2 * n));
/// let by_name = WatchLayer::new(|_: &u32| "double".into());
/// let service: WatchService<_, _> = by_name.layer(double);
/// assert_eq!(service.oneshot(21).await, Ok(42));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct WatchService<F, S> {
    name: F,
    inner: S,
}

impl<R, F, S> Service<R> for WatchService<F, S>
where
    F: Fn(&R) -> Cow<'static, str>,
    S: Service<R>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Watched<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let name = Name::named(&(self.name)(&request));
        // A handler may compute before its first `.await`, in the call itself.
        let _entered = scope::enter(name);
        Watched::at(self.inner.call(request), name)
    }
}
