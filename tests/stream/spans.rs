//! The submitter's span goes with the items.

use std::sync::{Arc, Mutex};

use crate::context::{INPUTS, SOURCES, all, numbers};
use crate::support::{lanes_with, time_limit};
use tracing::subscriber::with_default;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};
use twolane::Priority;

/// The names of the spans in which events come.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let name = context.event_span(event).map_or("none", |span| span.name());
        self.0.lock().unwrap().push(name.to_owned());
    }
}

/// With a queue limit, too: there a task of the I/O lane spawns the jobs that read.
#[test]
fn source_and_stages_run_inside_the_span() {
    let _limit = time_limit();
    for limited in [false, true] {
        for source in SOURCES {
            let lanes = lanes_with(2, |builder| match limited {
                true => builder.queue_limit(Priority::Normal, 1),
                false => builder,
            });
            let spans = Spans::default();
            let subscriber = Registry::default().with(spans.clone());
            with_default(subscriber, || {
                let event = || tracing::info!("here");
                let cpu = lanes.cpu.handle().clone();
                let request = tracing::info_span!("request");
                let numbers = request.in_scope(|| numbers(&cpu, source, event, event));
                all(&lanes, numbers);
            });
            let spans = spans.0.lock().unwrap();
            assert_eq!(*spans, vec!["request"; 2 * INPUTS as usize], "{source:?}");
        }
    }
}
