//! The process's own subscriber: the lane's helpers have no other.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use crate::support::{Lanes, lanes};
use tracing::span::Id;
use tracing::{Event, Subscriber, field};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

struct Tap;

static LISTENER: Mutex<Option<Sender<String>>> = Mutex::new(None);
static ONE_TEST: Mutex<()> = Mutex::new(());
static INSTALL: Once = Once::new();

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `LEVEL place: message, name=value ...` of each event of the crate.
pub(crate) struct Log {
    pub(crate) lines: Receiver<String>,
}

/// Runs the test on a lane of one thread, while no other test logs. The log has
/// to be silent in the end.
pub(crate) fn listen(test: impl Fn(&Log, Lanes)) {
    let _one_test = lock(&ONE_TEST);
    INSTALL.call_once(|| {
        let subscriber = Registry::default().with(Tap);
        tracing::subscriber::set_global_default(subscriber).unwrap();
        // The first lane of a process warns of what it finds around it.
        drop(lanes(1));
    });
    let (listener, lines) = mpsc::channel();
    *lock(&LISTENER) = Some(listener);
    let log = Log { lines };
    let lanes = lanes(1);
    test(&log, lanes);
    log.is_silent();
}

impl Log {
    /// The next line has each of these parts, and begins with the first.
    #[track_caller]
    pub(crate) fn says(&self, parts: &[&str]) {
        let line = self.lines.recv().unwrap();
        assert!(line.starts_with(parts[0]), "{line}");
        assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    }

    #[track_caller]
    pub(crate) fn is_silent(&self) {
        assert_eq!(self.lines.try_iter().next(), None);
    }
}

pub(crate) const PANICS_WHEN_CLOSED: &str = "panics when closed";

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Tap {
    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let name = context.span(&id).map(|span| span.name());
        assert_ne!(name, Some(PANICS_WHEN_CLOSED));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        // It warns of the kernel, once, as soon as it has measured it: in any test.
        if event.metadata().target().starts_with("giveway") {
            return;
        }
        struct Text(String);
        impl field::Visit for Text {
            fn record_debug(&mut self, field: &field::Field, value: &dyn std::fmt::Debug) {
                let text = match field.name() {
                    "message" => format!("{value:?} "),
                    name => format!("{name}={value:?} "),
                };
                self.0.push_str(&text);
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        let place = match context.event_span(event) {
            Some(span) => span.name(),
            None => event.metadata().target(),
        };
        let line = format!("{} {place}: {}", event.metadata().level(), text.0);
        if let Some(listener) = &*lock(&LISTENER) {
            let _ = listener.send(line);
        }
    }
}
