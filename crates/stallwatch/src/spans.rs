//! [`SpanWatch`]: a layer of `tracing` by which the watch sees the spans.

use std::cell::RefCell;

use tracing::span::Id;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::name::Name;
use crate::record::Kind;
use crate::scope::{self, Entered};
use crate::watching::is_watched;

/// A layer for `tracing-subscriber` that shows the watch which span each
/// thread is in.
///
/// So a poll that stalls inside of a span (`#[tracing::instrument]`, tower-http's
/// `TraceLayer`) is named by that span, without [`watch`](crate::watch) around it. The name
/// is that of the span with its place in the source; its fields are not read. If that is longer
/// than 256 bytes, it is cut, and ends in `…`.
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
    pub fn new() -> Self {
        Self::default()
    }
}

thread_local! {
    /// The spans that this thread has entered, innermost last.
    static ENTERED: RefCell<Vec<(Id, Entered)>> = const { RefCell::new(Vec::new()) };
}

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
    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        // The look-up of the span takes longer than all the rest.
        if !is_watched() {
            return;
        }
        let Some(span) = context.metadata(id) else {
            return;
        };
        let name = Name::remembered(span, || named(span));
        if let Some(entered) = scope::enter_as(Kind::SPAN, name, None) {
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
