//! Lag and stalls of an I/O lane: there if it is watched, once for all priorities, with a
//! label for the most frequent culprits.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use twolane::metrics::PrometheusCollector;
use twolane::watch::{Watch, watch};

use crate::facade::reported;
use crate::scrape::{Samples, samples, text};
use crate::support::lanes_with;

fn of_io(samples: &Samples) -> impl Iterator<Item = (&str, f64)> {
    let all = samples.iter().map(|(key, value)| (key.as_str(), *value));
    all.filter(|(key, _)| key.starts_with("twolane_io_"))
}

#[test]
fn a_lane_has_them_if_it_is_watched_from_zero_on() {
    for is_watched in [false, true] {
        let (cpu, _lanes) = lanes_with(1, |builder| match is_watched {
            // What a noisy machine delays is no stall.
            true => builder.watch_io(Watch::new().threshold(Duration::from_secs(60))),
            false => builder,
        })
        .and_handle();
        assert_eq!(cpu.watcher().is_some(), is_watched);
        let scraped = samples(&text(PrometheusCollector::new(&cpu)));
        for samples in [reported(&cpu), scraped] {
            // So that a rate begins at zero, not with the first stall.
            let stalls = samples.get("twolane_io_stalls_total{culprit=other,lane=cpu}");
            assert_eq!(stalls, is_watched.then_some(&0.0));
            let has_lag = samples.contains_key("twolane_io_lag_seconds_count{lane=cpu}");
            assert_eq!(has_lag, is_watched);
            assert_eq!(of_io(&samples).next().is_some(), is_watched);
        }
    }
}

/// Culprits of one stall come first, then twenty of two: those have a label each. A name
/// may hold what a label's value must escape.
#[test]
fn the_most_frequent_culprits_have_a_label_each() {
    let (send, stalls) = mpsc::channel();
    let told = Arc::new(AtomicBool::new(false));
    let tells = told.clone();
    let settings = Watch::new().on_stall(move |stall| {
        tells.store(true, SeqCst);
        let _ = send.send(stall.culprit().map(str::to_owned));
    });
    let (cpu, lanes) = lanes_with(1, |builder| builder.watch_io(settings)).and_handle();
    let stall = |name: &str| {
        told.store(false, SeqCst);
        let told = told.clone();
        let compute = async move { while !told.load(SeqCst) {} };
        let task = lanes.io.spawn(watch(compute).named(name));
        lanes.io.block_on(task).unwrap();
        assert_eq!(stalls.recv().unwrap().as_deref(), Some(name));
    };
    for n in 0..3 {
        stall(&format!("rare {n}"));
    }
    let frequent: Vec<_> = (0..20).map(|n| format!(r#"GET "\{n}""#)).collect();
    for name in frequent.iter().chain(&frequent) {
        stall(name);
    }
    assert!(stalls.try_recv().is_err());

    // Probes go on while there is a runtime.
    drop(lanes.io);
    let scraped = samples(&text(PrometheusCollector::new(&cpu)));
    let mut counted: Vec<_> = frequent.iter().map(|name| (&**name, 2.0)).collect();
    counted.push(("other", 3.0));
    for (culprit, n) in &counted {
        let key = format!("twolane_io_stalls_total{{culprit={culprit},lane=cpu}}");
        assert_eq!(scraped.get(&key), Some(n), "{key}");
    }
    let stalls: Vec<_> = of_io(&scraped)
        .filter(|(key, _)| key.starts_with("twolane_io_stalls"))
        .collect();
    assert_eq!(stalls.len(), counted.len());
    let (watcher, io_lag) = (cpu.watcher().unwrap(), cpu.io_lag());
    let sum: f64 = stalls.iter().map(|(_, n)| n).sum();
    assert_eq!(sum, watcher.stalls() as f64);

    let lag = |suffix: &str| scraped[&format!("twolane_io_lag_seconds{suffix}")];
    assert!(lag("_count{lane=cpu}") > 0.0);
    assert_eq!(lag("_count{lane=cpu}"), io_lag.count() as f64);
    assert_eq!(lag("_bucket{lane=cpu,le=inf}"), lag("_count{lane=cpu}"));
    assert_eq!(lag("_sum{lane=cpu}"), io_lag.sum().as_secs_f64());
    assert!(of_io(&scraped).all(|(key, _)| !key.contains("priority")));
    // A stall is no outcome of a job.
    let outcomes: BTreeSet<_> = scraped
        .keys()
        .filter_map(|key| Some(key.split_once("outcome=")?.1.split_once(',')?.0))
        .collect();
    let of_jobs = [
        "cancelled",
        "completed",
        "dropped",
        "expired",
        "panicked",
        "rejected",
    ];
    assert_eq!(outcomes, BTreeSet::from(of_jobs));

    assert_eq!(reported(&cpu), scraped);
}
