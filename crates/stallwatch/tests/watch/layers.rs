//! Names that come from layers: of `tower`, and of `tracing`.

use std::convert::Infallible;
use std::future::ready;

use crate::setting::{Watched, each_flavor, see_spans, two_probes, watched};
use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::routing::get;
use stallwatch::{Cause, WatchLayer, watch};
use tower::{ServiceBuilder, ServiceExt, service_fn};

fn route(request: &Request) -> std::borrow::Cow<'static, str> {
    let route = request.extensions().get::<MatchedPath>().unwrap();
    format!("{} {}", request.method(), route.as_str()).into()
}

/// A real server, and a real client.
fn ask(watched: &Watched, app: Router, path: &'static str) -> String {
    watched.spawn_and_wait(async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move { axum::serve(listener, app).await });
        let answer = reqwest::get(format!("http://{address}{path}")).await;
        let answer = answer.unwrap().text().await.unwrap();
        server.abort();
        answer
    })
}

#[test]
fn a_route_is_a_name() {
    each_flavor(|watched| {
        let compute = watched.compute("GET /users/{id}");
        let slow = async move || {
            compute();
            "slow"
        };
        let app: Router = Router::new()
            .route("/users/{id}", get(slow))
            .route_layer(WatchLayer::new(route));
        assert_eq!(ask(&watched, app, "/users/7"), "slow");
        let stall = watched.stall_of("GET /users/{id}");
        assert_eq!(*stall.cause(), Cause::Computes);
    });
}

/// Before it returns its future.
#[test]
fn a_service_that_computes_in_its_call_is_named() {
    let watched = watched(Some(2));
    let compute = watched.compute("a call");
    let service = service_fn(move |(): ()| {
        compute();
        ready(Ok::<_, Infallible>(()))
    });
    let by_name = WatchLayer::new(|(): &()| "a call".into());
    let service = ServiceBuilder::new().layer(by_name).service(service);
    watched.spawn_and_wait(service.oneshot(())).unwrap();
    watched.stall_of("a call");
}

#[test]
fn a_span_names_a_plain_task() {
    see_spans();
    each_flavor(|watched| {
        let compute = watched.compute("parse");
        watched.run_where_a_probe_ran(move || tracing::info_span!("parse").in_scope(compute));
        let stall = watched.stall_of("parse");
        assert!(stall.culprit().unwrap().contains("layers.rs:"), "{stall}");
        assert_eq!(stall.span(), None);
    });
}

#[test]
fn a_span_tells_what_is_inside_of_a_future_that_is_watched() {
    see_spans();
    each_flavor(|watched| {
        let compute = watched.compute("request");
        watched.spawn_and_wait(
            watch(async move { tracing::info_span!("parse").in_scope(compute) }).named("request"),
        );
        let stall = watched.stall_of("request");
        assert!(stall.span().unwrap().starts_with("parse ("), "{stall}");
    });
}

/// As in a `main` that is in a span. It is no poll, and what is watched inside has its name.
#[test]
fn a_span_around_the_runtime_hides_nothing() {
    see_spans();
    each_flavor(|watched| {
        let _span = tracing::info_span!("main").entered();
        let probes = watched.probes.clone();
        watched.io.block_on(two_probes(&probes));
        for _ in 0..2 {
            let compute = watched.compute("root");
            let root = watch(async move { compute() }).named("root");
            watched.io.block_on(root);
            watched.stall_of("root");
            watched.stall_as("task");
            watched.stall_of("task");
        }
        // The thread of `block_on` waits in it.
        watched.assert_none_was_told_of(&["main"]);
    });
}

/// As tower-http's `TraceLayer` makes them, and OpenTelemetry's.
#[test]
fn the_fields_of_a_request_s_span_name_its_route() {
    see_spans();
    let watched = watched(Some(1));
    let span = |uri: &str| tracing::debug_span!("request", method = %"GET", uri = %uri);
    let nested = |watched: &Watched, span: tracing::Span, name: &'static str| {
        let compute = watched.compute(name);
        watched.run_where_a_probe_ran(move || {
            let _request = span.entered();
            tracing::info_span!("decode").in_scope(compute);
        });
        watched.stall_of(name)
    };
    let by_path = nested(
        &watched,
        span("/users/4711/orders?page=2"),
        "GET /users/{}/orders",
    );
    assert!(by_path.span().unwrap().starts_with("decode ("), "{by_path}");
    let by_route = tracing::info_span!("r", method = "PUT", http.route = "/a/{id}", uri = "/a/7");
    nested(&watched, by_route, "PUT /a/{id}");
    let by_name = tracing::info_span!("r", otel.name = "billing", http.route = "/b");
    nested(&watched, by_name, "billing");
}

/// A span that is around each request is no culprit.
#[test]
fn the_innermost_span_is_the_culprit_if_none_is_a_route() {
    see_spans();
    let watched = watched(Some(1));
    let compute = watched.compute("parse");
    watched.run_where_a_probe_ran(move || {
        let _shared = tracing::info_span!("request").entered();
        tracing::info_span!("before").in_scope(|| ());
        tracing::info_span!("parse").in_scope(compute);
    });
    let stall = watched.stall_of("parse");
    assert_eq!(stall.span(), None, "{stall}");
}
