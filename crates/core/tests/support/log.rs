//! What a subscriber of a test's own hears, and what logs.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use tracing::subscriber::with_default;
use tracing::{Event, Subscriber, field};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// `span: message` of each event, or `target: message` outside any span.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Runs `f` with a subscriber of its own.
    pub fn during<R>(f: impl FnOnce() -> R) -> (R, Vec<String>) {
        let log = Self::default();
        let subscriber = Registry::default().with(log.clone());
        let result = with_default(subscriber, f);
        let lines = std::mem::take(&mut *log.0.lock().unwrap());
        (result, lines)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        struct Message(String);
        impl field::Visit for Message {
            fn record_debug(&mut self, field: &field::Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut message = Message(String::new());
        event.record(&mut message);
        let place = match context.event_span(event) {
            Some(span) => span.name(),
            None => event.metadata().target(),
        };
        self.0
            .lock()
            .unwrap()
            .push(format!("{place}: {}", message.0));
    }
}

/// Logs in each of its polls.
pub async fn two_polls() {
    tracing::info!("first");
    tokio::task::yield_now().await;
    tracing::info!("second");
}

/// Logs when it is dropped, and tells.
pub struct Logs(pub Sender<()>);

impl Drop for Logs {
    fn drop(&mut self) {
        tracing::info!("dropped");
        self.0.send(()).unwrap();
    }
}
