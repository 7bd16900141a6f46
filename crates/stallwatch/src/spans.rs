//! [`SpanWatch`]: a layer of `tracing` by which the watch sees the spans.

use std::cell::RefCell;
use std::fmt;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::name::Name;
use crate::scope::{self, EnteredSpan};
use crate::watching::is_watched;

/// A layer for `tracing-subscriber` that shows the watch which span each
/// thread is in.
///
/// So a poll that stalls inside of a span (`#[tracing::instrument]`, tower-http's
/// `TraceLayer`) is named by that span, without [`watch`](crate::watch) around it.
///
/// The culprit is the innermost span of a request, if its fields tell the route: `otel.name`;
/// `http.route`, after the method; or a `method` and a path (`uri`, `path`, `url.path`,
/// `http.target`). Without such fields, it is the innermost span, by its name and its place in the
/// source. The fields count that the span has when it is made, while a runtime is watched. A name
/// that is longer than 256 bytes is cut, and ends in `…`.
///
/// Names are kept for ever. So of a path the parts with a digit in them are shown as `{}`, and once
/// the process has 1,024 names, no field makes one more: the span's own name stands for it.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use tracing_subscriber::prelude::*;
/// use stallwatch::{SpanWatch, Watch};
///
/// tracing_subscriber::registry()
///     .with(SpanWatch::new())
///     .with(tracing_subscriber::fmt::layer())
///     .init();
/// let watcher = Watch::new().start(&tokio::runtime::Handle::current()).unwrap();
/// # let _ = watcher;
/// # }
/// ```
#[derive(Debug, Default)]
pub struct SpanWatch(());

impl SpanWatch {
    /// The layer.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::SpanWatch;
    /// use tracing_subscriber::prelude::*;
    ///
    /// tracing_subscriber::registry().with(SpanWatch::new()).init();
    /// // If this stalls a worker, the culprit is `parse (src/main.rs:6)`.
    /// tracing::info_span!("parse").in_scope(|| println!("it parses"));
    /// ```
    pub fn new() -> Self {
        Self::default()
    }
}

thread_local! {
    /// The spans that this thread has entered, innermost last.
    static ENTERED: RefCell<Vec<(Id, EnteredSpan)>> = const { RefCell::new(Vec::new()) };
}

/// What the fields of a request's span tell.
#[derive(Default)]
struct Request {
    name: Option<String>,
    method: Option<&'static str>,
    route: Option<String>,
    path: Option<String>,
}

const METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
];

impl Visit for Request {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if tells(field.name()) {
            self.record_str(field, &format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "otel.name" => self.name = Some(value.to_owned()),
            "http.route" => self.route = Some(value.to_owned()),
            "uri" | "path" | "url.path" | "http.target" => self.path = Some(without_ids(value)),
            // A client may send any.
            _ => self.method = METHODS.into_iter().find(|known| *known == value),
        }
    }
}

/// Whether that is a field of a request.
fn tells(field: &str) -> bool {
    let is_path = matches!(field, "uri" | "path" | "url.path" | "http.target");
    let is_method = matches!(field, "method" | "http.method" | "http.request.method");
    is_path || is_method || matches!(field, "otel.name" | "http.route")
}

/// `/users/4711/orders?page=2` as `/users/{}/orders`.
fn without_ids(uri: &str) -> String {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let has_digit = |part: &str| part.contains(|char: char| char.is_ascii_digit());
    let parts = path
        .split('/')
        .map(|part| if has_digit(part) { "{}" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

impl Request {
    fn route(self) -> Option<Name> {
        if let Some(name) = self.name {
            return Name::named_while_few(&name);
        }
        // A path without a method may be that of a file.
        let path = self.path.filter(|_| self.method.is_some());
        let (route, method) = (self.route.or(path)?, self.method.unwrap_or("_"));
        Name::named_while_few(&format!("{method} {route}"))
    }
}

/// The route of a span, in its extensions.
struct Route(Name);

/// The name of a span's place in the source.
#[cold]
fn named(of: &Metadata<'_>) -> Name {
    let (name, file) = (of.name(), of.file().unwrap_or(of.target()));
    match of.line() {
        Some(line) => Name::named(&format!("{name} ({file}:{line})")),
        None => Name::named(&format!("{name} ({file})")),
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanWatch {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = attributes.metadata().fields().iter();
        if !is_watched() || !fields.any(|field| tells(field.name())) {
            return;
        }
        let mut request = Request::default();
        attributes.record(&mut request);
        if let (Some(name), Some(span)) = (request.route(), context.span(id)) {
            // Another layer of this type may have been there before.
            span.extensions_mut().replace(Route(name));
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        // The look-up of the span takes longer than all the rest.
        if !is_watched() {
            return;
        }
        let Some(span) = context.span(id) else {
            return;
        };
        let route = span.extensions().get::<Route>().map(|Route(name)| *name);
        let of = span.metadata();
        let entered = scope::enter_span(scope::Span {
            name: route.unwrap_or_else(|| Name::remembered(of, || named(of))),
            is_route: route.is_some(),
        });
        if let Some(entered) = entered {
            // A thread that ends has none.
            let _ = ENTERED.try_with(|spans| spans.borrow_mut().push((id.clone(), entered)));
        }
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        let _ = ENTERED.try_with(|spans| {
            let mut spans = spans.borrow_mut();
            let at = spans.iter().rposition(|(of, _)| of == id);
            at.map(|at| spans.remove(at))
        });
    }
}
