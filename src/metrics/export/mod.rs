//! The metrics for monitoring systems, under the names and units that are usual there.
//!
//! [`FAMILIES`] is the one table of them. Each exporter walks it, so that all say the
//! same.

#[cfg(feature = "metrics-facade")]
pub(crate) mod facade;
#[cfg(feature = "prometheus-client")]
pub(crate) mod prometheus;

use std::borrow::Cow;

use MetricKind::{Counter, Gauge, Histogram};
use stallwatch::Name;
use twolane_core::metrics::{DurationHistogram, Metrics};
use twolane_core::{Handle, Priority};

/// With the values of their label.
const PRIORITIES: [(&str, Priority); 3] = [
    ("high", Priority::High),
    ("normal", Priority::Normal),
    ("low", Priority::Low),
];

/// The lane's label if the user names none.
const DEFAULT_LANE: &str = "cpu";

struct Family {
    /// As Prometheus stores it: with its unit, and with `_total` if it only grows.
    name: &'static str,
    kind: MetricKind,
    /// As both exporters name it.
    unit: Option<&'static str>,
    help: &'static str,
    samples: fn(&Snapshot) -> Vec<Sample>,
}

const SECONDS: &str = "seconds";

#[derive(Clone, Copy)]
enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

/// One value of a family, for one lane.
struct Sample {
    /// All but that of the lane.
    labels: Vec<Label>,
    value: Value,
}

type Label = (&'static str, Cow<'static, str>);

enum Value {
    Whole(u64),
    Seconds(f64),
    Histogram(Classic),
}

/// A histogram with the few buckets that Prometheus expects.
struct Classic {
    sum: f64,
    count: u64,
    /// The bounds, each with the number of entries between the previous one and itself.
    buckets: Vec<(f64, u64)>,
}

#[rustfmt::skip]
const FAMILIES: &[Family] = &[
    family("twolane_jobs_submitted_total", Counter, None,
        "Jobs that the lane has accepted.",
        |lane| lane.each_priority(|metrics| one(Value::Whole(metrics.submitted)))),
    family("twolane_jobs_total", Counter, None,
        "Jobs that have ended, by outcome; and calls that were rejected.",
        |lane| lane.each_priority(|metrics| by("outcome", metrics.counters().filter(|(name, _)| *name != "submitted")))),
    family("twolane_active_jobs", Gauge, None,
        "Jobs that have not ended, by state.",
        |lane| lane.each_priority(|metrics| by("state", metrics.gauges()))),
    family("twolane_threads", Gauge, None,
        "Threads that run jobs.",
        |lane| lane.each_priority(|metrics| one(Value::Whole(metrics.threads)))),
    family("twolane_tokio_tasks", Gauge, None,
        "Tokio tasks on the lane that are no jobs.",
        |lane| lane.each_priority(|metrics| one(Value::Whole(metrics.tokio_tasks)))),
    family("twolane_busy_seconds_total", Counter, Some(SECONDS),
        "Time that the threads have run jobs. A closure counts when it returns.",
        |lane| lane.each_priority(|metrics| one(Value::Seconds(metrics.busy_time().as_secs_f64())))),
    family("twolane_queue_permits", Gauge, None,
        "Permits of a queue that has a limit, by state.",
        |lane| lane.each_priority(|metrics| by("state", permits(metrics)))),
    family("twolane_queue_wait_seconds", Histogram, Some(SECONDS),
        "How long jobs waited for a thread, before each of their steps.",
        |lane| lane.each_priority(|metrics| one(Value::Histogram(classic(&metrics.queue_wait))))),
    family("twolane_run_seconds", Histogram, Some(SECONDS),
        "How long a thread ran a job: each closure, each poll of a future.",
        |lane| lane.each_priority(|metrics| one(Value::Histogram(classic(&metrics.run_time))))),
    family("twolane_io_lag_seconds", Histogram, Some(SECONDS),
        "How long probes of the watch waited for the I/O lane.",
        |lane| lane.io_lane(|io| one(Value::Histogram(classic(&io.lag))))),
    family("twolane_io_stalls_total", Counter, None,
        "Stalls of the I/O lane, by culprit: the most frequent ones, and other.",
        |lane| lane.io_lane(|io| culprits(&io.stalls))),
    family("twolane_cpu_stalls_total", Counter, None,
        "Jobs that held up the CPU lane, as the watch has reported.",
        |lane| lane.io_lane(|io| one(Value::Whole(io.cpu_stalls)))),
];

const fn family(
    name: &'static str,
    kind: MetricKind,
    unit: Option<&'static str>,
    help: &'static str,
    samples: fn(&Snapshot) -> Vec<Sample>,
) -> Family {
    Family {
        name,
        kind,
        unit,
        help,
        samples,
    }
}

fn one(value: Value) -> Vec<Sample> {
    let labels = Vec::new();
    vec![Sample { labels, value }]
}

fn by<N: Into<Cow<'static, str>>>(
    label: &'static str,
    counts: impl IntoIterator<Item = (N, u64)>,
) -> Vec<Sample> {
    let sample = |(of, n): (N, u64)| Sample {
        labels: vec![(label, of.into())],
        value: Value::Whole(n),
    };
    counts.into_iter().map(sample).collect()
}

/// Culprits with a label of their own. Names come from the user, and a time series costs
/// Prometheus memory.
const CULPRITS: usize = 20;

/// The most frequent culprits, and the sum of the rest as `other`, where code counts that
/// has no name.
///
/// No count decreases, although the ranks change: `other` is a sum of the lowest counts,
/// and such a sum cannot decrease while each count grows.
fn culprits(most_first: &[(Option<Name>, u64)]) -> Vec<Sample> {
    let name = |(culprit, n): &(Option<Name>, u64)| Some(((*culprit)?.to_string(), *n));
    let named = most_first.iter().filter_map(name);
    let named = named.filter(|(culprit, _)| culprit != OTHER);
    let mut counts: Vec<_> = named.take(CULPRITS).collect();
    let all: u64 = most_first.iter().map(|(_, n)| n).sum();
    let of_most: u64 = counts.iter().map(|(_, n)| n).sum();
    counts.push((OTHER.to_owned(), all - of_most));
    by("culprit", counts)
}

const OTHER: &str = "other";

/// Nothing if the queue has no limit.
fn permits(metrics: &Metrics) -> impl Iterator<Item = (&'static str, u64)> {
    let used = metrics.permits_in_use;
    let states = |limit: u64| [("in_use", used), ("free", limit.saturating_sub(used))];
    metrics.queue_limit.map(states).into_iter().flatten()
}

/// In seconds: from what is too small to be offloaded to what is too long to wait for.
/// `histogram_quantile` interpolates between two bounds, so it errs by their ratio at most.
#[rustfmt::skip]
const BOUNDS: [f64; 19] = [
    10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6,
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5,
    1.0, 2.0, 5.0, 10.0,
];

/// The buckets of the histogram are finer by far. One that a bound cuts counts as above
/// the bound, so an entry may seem a 32nd longer than it was.
fn classic(histogram: &DurationHistogram) -> Classic {
    let bounds = BOUNDS.into_iter().chain([f64::INFINITY]);
    let mut buckets: Vec<_> = bounds.map(|bound| (bound, 0)).collect();
    for (at_most, count) in histogram.buckets() {
        let above = BOUNDS.partition_point(|bound| *bound < at_most.as_secs_f64());
        buckets[above].1 += count;
    }
    Classic {
        sum: histogram.sum().as_secs_f64(),
        count: buckets.iter().map(|(_, count)| count).sum(),
        buckets,
    }
}

/// All that is known of a lane.
struct Snapshot {
    /// Each with its label.
    priorities: [(&'static str, Metrics); PRIORITIES.len()],
    /// `None` if it is not watched.
    io: Option<IoLane>,
}

struct IoLane {
    lag: DurationHistogram,
    /// By culprit, most first.
    stalls: Vec<(Option<Name>, u64)>,
    cpu_stalls: u64,
}

impl Snapshot {
    fn of(cpu: &Handle) -> Self {
        let priorities =
            PRIORITIES.map(|(label, priority)| (label, cpu.with_priority(priority).metrics()));
        let io = cpu.watcher().map(|watcher| IoLane {
            lag: cpu.io_lag(),
            stalls: watcher.stalls_by_culprit(),
            cpu_stalls: watcher.pool_stalls(),
        });
        Self { priorities, io }
    }

    fn each_priority(&self, samples: fn(&Metrics) -> Vec<Sample>) -> Vec<Sample> {
        let labelled = |(priority, metrics): &(&'static str, Metrics)| {
            let mut samples = samples(metrics);
            for sample in &mut samples {
                sample.labels.insert(0, ("priority", (*priority).into()));
            }
            samples
        };
        self.priorities.iter().flat_map(labelled).collect()
    }

    /// It has no priorities.
    fn io_lane(&self, samples: fn(&IoLane) -> Vec<Sample>) -> Vec<Sample> {
        self.io.as_ref().map(samples).unwrap_or_default()
    }
}
