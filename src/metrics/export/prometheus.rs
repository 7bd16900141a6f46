//! [`PrometheusCollector`]: for the crate `prometheus-client`.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::{DEFAULT_LANE, FAMILIES, MetricKind, Snapshot, Value};
use twolane_core::Handle;

/// Puts the metrics of CPU lanes into a [`Registry`](prometheus_client::registry::Registry) of
/// `prometheus-client`.
///
/// At each scrape it takes a snapshot of every lane and priority. Between scrapes it costs
/// nothing. The guide has the [names](crate::guide::metrics#for-prometheus).
///
/// Register one collector for all lanes of a process: `OpenMetrics` wants the samples of
/// one name together.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use prometheus_client::encoding::text::encode;
/// use prometheus_client::registry::Registry;
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let mut registry = Registry::default();
/// registry.register_collector(Box::new(twolane::metrics::PrometheusCollector::new(cpu.handle())));
/// let mut text = String::new(); // what a scrape of `/metrics` gets
/// encode(&mut text, &registry).unwrap();
/// assert!(text.contains("twolane_threads{lane=\"cpu\",priority=\"normal\"}"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PrometheusCollector {
    lanes: Vec<(String, Handle)>,
}

impl PrometheusCollector {
    /// Collects from one lane, whose label is `lane="cpu"`.
    ///
    /// All priorities are collected, whichever the handle has. The collector does not keep
    /// the lane's threads.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let collector = twolane::metrics::PrometheusCollector::new(cpu.handle());
    /// # }
    /// ```
    pub fn new(cpu: &Handle) -> Self {
        Self::of_lanes([(DEFAULT_LANE, cpu)])
    }

    /// Collects from several lanes, each with its label.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let (ingest, query) = (twolane::CpuRuntime::new().unwrap(), twolane::CpuRuntime::new().unwrap());
    /// let lanes = [("ingest", ingest.handle()), ("query", query.handle())];
    /// let collector = twolane::metrics::PrometheusCollector::of_lanes(lanes);
    /// # }
    /// ```
    pub fn of_lanes<'a, N: Into<String>>(lanes: impl IntoIterator<Item = (N, &'a Handle)>) -> Self {
        let lanes = lanes
            .into_iter()
            .map(|(name, cpu)| (name.into(), cpu.clone()));
        Self {
            lanes: lanes.collect(),
        }
    }
}

impl Collector for PrometheusCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // All families are of the same snapshots, so that they agree.
        let lanes = self.lanes.iter();
        let all: Vec<_> = lanes.map(|(lane, cpu)| (lane, Snapshot::of(cpu))).collect();
        for family in FAMILIES {
            let unit = family.unit.map(|unit| Unit::Other(unit.to_owned()));
            let kind = match family.kind {
                MetricKind::Counter => MetricType::Counter,
                MetricKind::Gauge => MetricType::Gauge,
                MetricKind::Histogram => MetricType::Histogram,
            };
            let stem = stem(family.name, family.unit);
            let mut encoder = encoder.encode_descriptor(stem, family.help, unit.as_ref(), kind)?;
            for (lane, snapshot) in &all {
                for sample in (family.samples)(snapshot) {
                    let mut labels = vec![("lane", lane.as_str())];
                    labels.extend(sample.labels.iter().map(|(label, of)| (*label, &**of)));
                    let mut encoder = encoder.encode_family(&labels)?;
                    encode(&mut encoder, family.kind, &sample.value)?;
                }
            }
        }
        Ok(())
    }
}

/// The name without what the encoder appends.
fn stem<'a>(name: &'a str, unit: Option<&str>) -> &'a str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    let stem = unit.and_then(|unit| name.strip_suffix(unit)?.strip_suffix('_'));
    stem.unwrap_or(name)
}

fn encode(encoder: &mut MetricEncoder<'_>, kind: MetricKind, value: &Value) -> fmt::Result {
    match (kind, value) {
        (MetricKind::Counter, Value::Whole(n)) => {
            encoder.encode_counter::<NoLabelSet, _, u64>(n, None)
        }
        (MetricKind::Counter, Value::Seconds(n)) => {
            encoder.encode_counter::<NoLabelSet, _, f64>(n, None)
        }
        (_, Value::Whole(n)) => encoder.encode_gauge(n),
        (_, Value::Seconds(n)) => encoder.encode_gauge(n),
        (_, Value::Histogram(all)) => {
            encoder.encode_histogram::<NoLabelSet>(all.sum, all.count, &all.buckets, None)
        }
    }
}
