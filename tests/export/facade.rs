//! `MetricsReporter`: a recorder of the facade gets what a scrape gets.

use std::collections::BTreeSet;
use std::time::Duration;

use metrics::{Key, Unit};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use twolane::Handle;
use twolane::metrics::{MetricsReporter, PrometheusCollector};
use twolane::watch::Watch;

use crate::busy;
use crate::scrape::{Samples, key, samples, text};
use crate::support::wait::wait_until;
use crate::support::{lanes, lanes_with};

fn recorded(snapshotter: &Snapshotter) -> Samples {
    let all = snapshotter.snapshot().into_vec().into_iter();
    let sample = |(composite, _, _, value): (metrics_util::CompositeKey, _, _, DebugValue)| {
        let labels = composite.key().labels();
        let labels = labels.map(|label| (label.key().to_owned(), label.value().to_owned()));
        let value = match value {
            DebugValue::Counter(n) => n as f64,
            DebugValue::Gauge(now) => now.into_inner(),
            DebugValue::Histogram(_) => panic!("the reporter records none"),
        };
        (key(composite.key().name(), labels), value)
    };
    all.map(sample).collect()
}

/// What a recorder gets of one report.
pub(crate) fn reported(cpu: &Handle) -> Samples {
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, || MetricsReporter::new(cpu).report());
    recorded(&recorder.snapshotter())
}

#[test]
fn a_recorder_gets_what_a_scrape_gets() {
    let busy = busy();
    let cpu = busy.lanes.cpu.handle().clone();
    let scraped = samples(&text(PrometheusCollector::new(&cpu)));
    assert_eq!(reported(&cpu), scraped);
}

#[test]
fn names_and_labels_can_be_changed() {
    let lanes = lanes(1);
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, || {
        let reporter = MetricsReporter::new(lanes.cpu.handle()).with_lane("ingest");
        let mut reporter = reporter.with_metrics_transformer(|name| {
            Key::from_parts(name.replacen("twolane_", "app_", 1), &[("shop", "7")])
        });
        reporter.report();
    });
    let found = recorded(&recorder.snapshotter());
    assert_eq!(
        found["app_threads{lane=ingest,priority=normal,shop=7}"],
        1.0
    );
    let is_renamed = |name: &String| name.starts_with("app_") && name.contains("lane=ingest");
    assert!(found.keys().all(is_renamed), "{found:?}");
}

#[test]
fn all_is_described() {
    let lanes = lanes_with(1, |builder| builder.watch_io(Watch::new()));
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, || {
        MetricsReporter::new(lanes.cpu.handle()).describe().report();
    });
    let mut units = BTreeSet::new();
    for (key, unit, help, _) in recorder.snapshotter().snapshot().into_vec() {
        let name = key.key().name().to_owned();
        assert!(help.is_some_and(|text| text.ends_with('.')), "{name}");
        units.extend(unit.map(|unit| (name, unit.as_str())));
    }
    let seconds = Unit::Seconds.as_str();
    let expected = [
        ("twolane_busy_seconds_total", seconds),
        ("twolane_io_lag_seconds_sum", seconds),
        ("twolane_queue_wait_seconds_sum", seconds),
        ("twolane_run_seconds_sum", seconds),
    ];
    assert_eq!(
        units,
        BTreeSet::from(expected.map(|(name, unit)| (name.to_owned(), unit)))
    );
}

/// The recorder keeps a counter when its lane ends. A counter that was set to the new lane's count
/// stood still until that was larger than the old lane's.
#[test]
fn lanes_one_after_the_other_under_one_label_add_up() {
    let recorder = DebuggingRecorder::new();
    let (mut busy, mut waited) = (0.0, 0.0);
    for jobs in [3, 2, 4] {
        let (cpu, lanes) = lanes_with(1, |builder| builder.histograms(true)).and_handle();
        let mut reporter = MetricsReporter::new(&cpu);
        let mut report = || metrics::with_local_recorder(&recorder, || reporter.report());
        report();
        for _ in 0..jobs {
            cpu.spawn_cpu(|| ()).wait().unwrap();
            report();
        }
        lanes.io.block_on(lanes.cpu.shutdown());
        report();
        // Nothing happens between these.
        report();
        busy += cpu.metrics().busy_time().as_secs_f64();
        waited += cpu.metrics().queue_wait.sum().as_secs_f64();
    }
    let found = recorded(&recorder.snapshotter());
    let of_normal = |name: &str| found[&format!("twolane_{name}priority=normal}}")];
    for counter in [
        "jobs_submitted_total{lane=cpu,",
        "jobs_total{lane=cpu,outcome=completed,",
        "queue_wait_seconds_count{lane=cpu,",
        "queue_wait_seconds_bucket{lane=cpu,le=inf,",
        "run_seconds_count{lane=cpu,",
    ] {
        assert_eq!(of_normal(counter), 9.0, "{counter}");
    }
    // Sums of seconds, of floats, go with the counts.
    for (name, sum) in [
        ("busy_seconds_total{lane=cpu,", busy),
        ("queue_wait_seconds_sum{lane=cpu,", waited),
    ] {
        let now = of_normal(name);
        assert!(
            (now - sum).abs() < 1e-9 && sum > 0.0,
            "{name}: {now}, {sum}"
        );
    }
    // What is now is of the last lane alone.
    assert!(of_normal("threads{lane=cpu,") <= 1.0);
}

/// At once, and then at each interval of Tokio's clock, which stands still here unless all
/// wait.
#[test]
fn it_reports_at_each_interval() {
    let (cpu, _lanes) = lanes(1).and_handle();
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let completed = || {
        let found = recorded(&snapshotter);
        let name = "twolane_jobs_total{lane=cpu,outcome=completed,priority=normal}";
        found.get(name).copied().unwrap_or(0.0)
    };
    // An `.await` would let the clock go on.
    let run = || {
        let task = cpu.spawn_cpu(|| ());
        wait_until(|| task.is_finished());
    };
    let paused = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    // This thread runs the reporter as well.
    let _recorder = metrics::set_default_local_recorder(&recorder);
    paused.block_on(async {
        run();
        let reporter = MetricsReporter::new(&cpu).with_interval(Duration::from_secs(60));
        let reporter = tokio::spawn(reporter.describe_and_run());
        let until = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
        until(1).await;
        assert_eq!(completed(), 1.0);
        run();
        until(58).await;
        // A snapshot takes what the counters have: each has what was reported since the last one.
        assert_eq!(completed(), 0.0);
        until(2).await;
        assert_eq!(completed(), 1.0);
        reporter.abort();
    });
}
