//! [`MetricsReporter`]: for the facade `metrics`, and so for any of its exporters.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use metrics::{Key, Label, Level, Metadata, Recorder, Unit};
use tokio::time::MissedTickBehavior;

use super::{DEFAULT_LANE, FAMILIES, Family, MetricKind, Sample, Snapshot, Value};
use twolane_core::Handle;

type Transformer = Box<dyn FnMut(&str) -> Key + Send>;

const METADATA: Metadata<'static> = Metadata::new("twolane", Level::INFO, Some(module_path!()));

/// Reports the metrics of a CPU lane to the recorder of the `metrics` facade.
///
/// It is used as `tokio-metrics`' `RuntimeMetricsReporter` is. The guide has the
/// [names](crate::guide::metrics#for-prometheus): those of
/// [`PrometheusCollector`](crate::metrics::PrometheusCollector), so that the same queries read
/// both. Three things differ, because of the facade:
///
/// - Its counters are integers, so sums of seconds are gauges.
/// - Its histograms take single values. Histograms that are ready, as ours are, would be
///   taken apart, entry by entry: work and memory for each job. So a histogram is reported
///   as what Prometheus makes of one: counters `.._bucket` with the label `le`, and
///   `.._count` and `.._sum`. `histogram_quantile` reads them, over all instances.
/// - Its recorders keep what they once had. So a culprit of `twolane_io_stalls_total` that
///   is no longer among the 20 most frequent stays there with its last count, which is in
///   `other` too.
///
/// Counters and sums of seconds grow by what has come since the reporter's last report. So lanes
/// that follow one another under one label add up, and a lane needs one reporter: two count its
/// jobs twice. Install the exporter first, because later reports do not repeat what an earlier one
/// has told.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// // First install an exporter: `metrics-exporter-prometheus`, for example.
/// let reporter = twolane::metrics::MetricsReporter::new(cpu.handle());
/// tokio::spawn(reporter.describe_and_run());
/// # }
/// ```
#[must_use = "it reports nothing unless it is run"]
pub struct MetricsReporter {
    cpu: Handle,
    lane: String,
    interval: Duration,
    transformer: Transformer,
    /// What each counter, and each sum of seconds, had at the last report.
    reported: HashMap<Key, f64>,
}

impl MetricsReporter {
    /// Reports on one lane, with the label `lane="cpu"`, every 10 seconds.
    ///
    /// All priorities are reported, whichever the handle has. The reporter does not keep
    /// the lane's threads.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let reporter = twolane::metrics::MetricsReporter::new(cpu.handle());
    /// # }
    /// ```
    pub fn new(cpu: &Handle) -> Self {
        Self {
            cpu: cpu.clone(),
            lane: DEFAULT_LANE.to_owned(),
            interval: Duration::from_secs(10),
            transformer: Box::new(|name| Key::from_name(name.to_owned())),
            reported: HashMap::new(),
        }
    }

    /// Sets the lane's label. Lanes that live at the same time need one each.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let ingest = twolane::CpuRuntime::new().unwrap();
    /// let reporter = twolane::metrics::MetricsReporter::new(ingest.handle()).with_lane("ingest");
    /// # }
    /// ```
    pub fn with_lane(mut self, lane: impl Into<String>) -> Self {
        self.lane = lane.into();
        self
    }

    /// Sets the time between two reports. At most that of two scrapes is useful.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let reporter = twolane::metrics::MetricsReporter::new(cpu.handle())
    ///     .with_interval(std::time::Duration::from_secs(1));
    /// # }
    /// ```
    pub fn with_interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Sets what makes a key of a name, to rename the metrics or to label them.
    ///
    /// The names begin with `twolane_`. The reporter adds its own labels to the key.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use metrics::Key;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let reporter = twolane::metrics::MetricsReporter::new(cpu.handle()).with_metrics_transformer(|name| {
    ///     let name = name.replacen("twolane_", "my_app_cpu_", 1);
    ///     Key::from_parts(name, &[("application", "my_app")])
    /// });
    /// # }
    /// ```
    pub fn with_metrics_transformer(
        mut self,
        transformer: impl FnMut(&str) -> Key + Send + 'static,
    ) -> Self {
        self.transformer = Box::new(transformer);
        self
    }

    /// Gives the recorder the help texts and units.
    ///
    /// The recorder is that of this thread now, as with all of the facade. Once per
    /// recorder is enough.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let reporter = twolane::metrics::MetricsReporter::new(cpu.handle()).describe();
    /// # }
    /// ```
    pub fn describe(mut self) -> Self {
        metrics::with_recorder(|recorder| {
            for family in FAMILIES {
                let unit = family.unit.and_then(Unit::from_string);
                let mut name =
                    |suffix| (self.transformer)(&format!("{}{suffix}", family.name)).name_shared();
                let help = || family.help.into();
                match (family.kind, family.unit) {
                    (MetricKind::Histogram, _) => {
                        recorder.describe_counter(name("_bucket"), None, help());
                        recorder.describe_counter(name("_count"), None, help());
                        recorder.describe_gauge(name("_sum"), unit, help());
                    }
                    (MetricKind::Counter, None) => {
                        recorder.describe_counter(name(""), unit, help())
                    }
                    _ => recorder.describe_gauge(name(""), unit, help()),
                }
            }
        });
        self
    }

    /// Reports once: for a loop of your own, and for its last report before the process ends.
    ///
    /// The recorder is that of this thread now.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let mut reporter = twolane::metrics::MetricsReporter::new(cpu.handle());
    /// cpu.shutdown().await;
    /// reporter.report();
    /// # }
    /// ```
    pub fn report(&mut self) {
        let snapshot = Snapshot::of(&self.cpu);
        metrics::with_recorder(|recorder| {
            for family in FAMILIES {
                for sample in (family.samples)(&snapshot) {
                    self.record(recorder, family, sample);
                }
            }
        });
    }

    fn record(&mut self, recorder: &dyn Recorder, family: &Family, sample: Sample) {
        let mut key = |suffix, within: Option<String>| {
            let mut labels = vec![Label::new("lane", self.lane.clone())];
            let own = sample.labels.iter().cloned();
            labels.extend(own.map(|(label, of)| Label::new(label, of)));
            labels.extend(within.map(|bound| Label::new("le", bound)));
            (self.transformer)(&format!("{}{suffix}", family.name)).with_extra_labels(labels)
        };
        // By the difference: the recorder also has what earlier lanes of this label have reported.
        let mut grow = |key: Key, now: f64, is_count: bool| {
            let more = now - self.reported.insert(key.clone(), now).unwrap_or(0.0);
            let counter = || recorder.register_counter(&key, &METADATA);
            match is_count {
                true => counter().increment(more as u64),
                false => recorder.register_gauge(&key, &METADATA).increment(more),
            }
        };
        let set = |key, now| recorder.register_gauge(&key, &METADATA).set(now);
        match (family.kind, &sample.value) {
            (MetricKind::Counter, Value::Whole(n)) => grow(key("", None), *n as f64, true),
            (_, Value::Whole(n)) => set(key("", None), *n as f64),
            (_, Value::Seconds(now)) => grow(key("", None), *now, false),
            (_, Value::Histogram(all)) => {
                let mut within = 0;
                for (bound, more) in &all.buckets {
                    within += more;
                    let bound = match *bound {
                        f64::INFINITY => "+Inf".to_owned(),
                        bound => bound.to_string(),
                    };
                    grow(key("_bucket", Some(bound)), within as f64, true);
                }
                grow(key("_count", None), all.count as f64, true);
                grow(key("_sum", None), all.sum, false);
            }
        }
    }

    /// Reports at once, and then at each interval, until the future is dropped.
    ///
    /// # Panics
    ///
    /// If the interval is zero, or the Tokio runtime that polls it has no timer.
    ///
    /// # Cancel safety
    ///
    /// It can be dropped at any time.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// tokio::spawn(twolane::metrics::MetricsReporter::new(cpu.handle()).describe().run());
    /// # }
    /// ```
    pub async fn run(mut self) {
        let mut ticks = tokio::time::interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.report();
        }
    }

    /// [Describes](Self::describe) the metrics, and [runs](Self::run).
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// tokio::spawn(twolane::metrics::MetricsReporter::new(cpu.handle()).describe_and_run());
    /// # }
    /// ```
    pub async fn describe_and_run(self) {
        self.describe().run().await;
    }
}

impl fmt::Debug for MetricsReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsReporter")
            .field("lane", &self.lane)
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}
