//! The same service without twolane, as it is often written.

use axum::Router;
use axum::error_handling::HandleErrorLayer;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::{BoxError, ServiceBuilder};
use twolane_benches::tail::work::Work;

use crate::server::compute;
use crate::service::{failed, unavailable};

/// Computes on a thread that serves connections.
pub fn inline(work: Work) -> Router {
    let handler = async move || uncancelled(work);
    with_health(Router::new().route("/work", get(handler).post(handler)))
}

/// As many threads as there are requests, up to 512; then a queue without end.
pub fn spawn_blocking(work: Work) -> Router {
    let handler = move || on_a_blocking_thread(work);
    with_health(Router::new().route("/work", get(handler).post(handler)))
}

/// At most `limit` at a time, as far as their clients stay: a permit is released when
/// its client has gone, although the closure runs on.
pub fn spawn_blocking_limited(work: Work, limit: usize) -> Router {
    let limit = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(async |error: BoxError| {
            unavailable(&error)
        }))
        .load_shed()
        // axum makes a service of the layers for each connection. tower's plain
        // `concurrency_limit` would then count for each one from zero.
        .layer(GlobalConcurrencyLimitLayer::new(limit));
    let handler = move || on_a_blocking_thread(work);
    let routes = get(handler).post(handler).layer(limit);
    with_health(Router::new().route("/work", routes))
}

fn with_health(router: Router) -> Router {
    router.route("/health", get(async || "ok"))
}

async fn on_a_blocking_thread(work: Work) -> Response {
    match tokio::task::spawn_blocking(move || uncancelled(work)).await {
        Ok(hash) => hash.into_response(),
        Err(error) => failed(&error),
    }
}

/// Nothing tells it that its client has gone.
fn uncancelled(work: Work) -> String {
    let Ok(hash) = compute(work, || Ok::<_, std::convert::Infallible>(()));
    hash
}
