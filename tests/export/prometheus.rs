//! `PrometheusCollector`: names, types, units, labels and values.

use std::time::Duration;

use twolane::Priority;
use twolane::metrics::{DurationHistogram, PrometheusCollector};

use crate::scrape::{samples, text};
use crate::support::{lanes, lanes_with};
use crate::{LIMIT, busy};

#[test]
fn each_family_has_its_name_type_and_unit_once() {
    let (one, two) = (lanes(1), lanes(1));
    let both = [("ingest", one.cpu.handle()), ("query", two.cpu.handle())];
    let text = text(PrometheusCollector::of_lanes(both));
    let is_told = |line: &&str| line.starts_with("# ") && !line.starts_with("# HELP ");
    let found: Vec<_> = text.lines().filter(is_told).collect();
    assert_eq!(
        found,
        [
            "# TYPE twolane_jobs_submitted counter",
            "# TYPE twolane_jobs counter",
            "# TYPE twolane_active_jobs gauge",
            "# TYPE twolane_threads gauge",
            "# TYPE twolane_tokio_tasks gauge",
            "# TYPE twolane_busy_seconds counter",
            "# UNIT twolane_busy_seconds seconds",
            "# TYPE twolane_queue_permits gauge",
            "# TYPE twolane_queue_wait_seconds histogram",
            "# UNIT twolane_queue_wait_seconds seconds",
            "# TYPE twolane_run_seconds histogram",
            "# UNIT twolane_run_seconds seconds",
            "# TYPE twolane_io_lag_seconds histogram",
            "# UNIT twolane_io_lag_seconds seconds",
            "# TYPE twolane_io_stalls counter",
            "# TYPE twolane_cpu_stalls counter",
            "# EOF",
        ]
    );
    assert_eq!(text.matches("# HELP ").count(), 12);
    let samples = samples(&text);
    for lane in ["ingest", "query"] {
        for priority in ["high", "normal", "low"] {
            let threads = format!("twolane_threads{{lane={lane},priority={priority}}}");
            assert_eq!(samples[&threads], 1.0, "{threads}");
        }
    }
    // No queue has a limit.
    let has_permits = |name: &String| name.starts_with("twolane_queue_permits");
    assert!(!samples.keys().any(has_permits));
}

#[test]
fn a_scrape_tells_what_the_test_has_counted() {
    let busy = busy();
    let cpu = busy.lanes.cpu.handle().clone();
    let samples = samples(&text(PrometheusCollector::new(&cpu)));
    let is = |name: &str, label: &str, expected: f64| {
        let (name, priority) = name.split_once(' ').unwrap();
        let mut labels = vec!["lane=cpu".to_owned(), format!("priority={priority}")];
        labels.extend((!label.is_empty()).then(|| label.to_owned()));
        labels.sort();
        let key = format!("{name}{{{}}}", labels.join(","));
        assert_eq!(samples.get(&key), Some(&expected), "{key}");
    };
    is("twolane_jobs_submitted_total normal", "", 8.0);
    is("twolane_jobs_submitted_total low", "", 1.0);
    is("twolane_jobs_submitted_total high", "", 0.0);
    is("twolane_jobs_total normal", "outcome=completed", 3.0);
    is("twolane_jobs_total normal", "outcome=panicked", 1.0);
    is("twolane_jobs_total normal", "outcome=cancelled", 1.0);
    is("twolane_jobs_total normal", "outcome=expired", 0.0);
    is("twolane_jobs_total normal", "outcome=dropped", 0.0);
    is("twolane_jobs_total normal", "outcome=rejected", 2.0);
    is("twolane_active_jobs normal", "state=queued", 1.0);
    is("twolane_active_jobs normal", "state=running", 1.0);
    is("twolane_active_jobs normal", "state=suspended", 1.0);
    is("twolane_threads normal", "", 1.0);
    is("twolane_threads high", "", 1.0);
    // Three jobs are there, one is cancelled and still in the queue, one is to come.
    is("twolane_queue_permits normal", "state=in_use", LIMIT as f64);
    is("twolane_queue_permits normal", "state=free", 0.0);
    // Three closures, one panic, and one poll have ended. One closure runs.
    is("twolane_run_seconds_count normal", "", 5.0);
    is("twolane_run_seconds_bucket normal", "le=inf", 5.0);
    is("twolane_queue_wait_seconds_count normal", "", 6.0);
    // Jobs that have an outcome are no longer active, and the other way round.
    let of = |name: &str| {
        let all = samples.iter().filter(|(key, _)| key.starts_with(name));
        let jobs = all.filter(|(key, _)| !key.contains("rejected"));
        jobs.map(|(_, n)| n).sum::<f64>()
    };
    let ended = of("twolane_jobs_total");
    let submitted = of("twolane_jobs_submitted_total");
    assert_eq!(ended + of("twolane_active_jobs"), submitted);
}

#[rustfmt::skip]
const BOUNDS: [f64; 19] = [
    1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5,
    1.0, 2.0, 5.0, 10.0,
];

/// In the fine buckets of the snapshot an entry is at most a 32nd too long.
#[test]
fn histograms_have_the_sums_and_buckets_of_the_snapshot() {
    let lanes = lanes_with(1, |builder| builder.histograms(true));
    let cpu = lanes.cpu.handle().with_priority(Priority::High);
    for rounds in 0..200_u64 {
        let count = move || (0..rounds * 1_000).fold(0, |sum, n| std::hint::black_box(sum + n));
        cpu.spawn_cpu(count).wait().unwrap();
    }
    let metrics = cpu.metrics();
    let samples = samples(&text(PrometheusCollector::new(&cpu)));
    let check = |name: &str, histogram: &DurationHistogram| {
        let value = |suffix: &str, label: &str| {
            samples[&format!("twolane_{name}_seconds{suffix}{{lane=cpu,{label}priority=high}}")]
        };
        let most: Duration = histogram
            .buckets()
            .map(|(at_most, n)| at_most * n as u32)
            .sum();
        let least = most.mul_f64(30.0 / 32.0);
        assert!((least..=most).contains(&histogram.sum()), "{histogram:?}");
        assert_eq!(value("_sum", ""), histogram.sum().as_secs_f64());
        assert_eq!(value("_count", ""), 200.0);
        assert_eq!(value("_bucket", "le=inf,"), 200.0);
        let mut before = 0.0;
        for bound in BOUNDS {
            let below = histogram
                .buckets()
                .filter(|(end, _)| end.as_secs_f64() <= bound);
            let below = below.map(|(_, n)| n as f64).sum::<f64>();
            let found = value("_bucket", &format!("le={bound},"));
            assert_eq!(found, below, "{name}, {bound}");
            assert!(found >= before, "{name}, {bound}");
            before = found;
        }
    };
    check("queue_wait", &metrics.queue_wait);
    check("run", &metrics.run_time);
    assert_eq!(metrics.busy_time(), metrics.run_time.sum());
    let busy = samples["twolane_busy_seconds_total{lane=cpu,priority=high}"];
    assert_eq!(busy, metrics.busy_time().as_secs_f64());
}
