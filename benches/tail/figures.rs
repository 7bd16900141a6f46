//! Latencies as a table's cells and as a report's rows, and ratios as both.

use hdrhistogram::Histogram;

use super::client::Latencies;
use super::findings::{Findings, Slice, nanos};
use crate::support::{Ratio, Report, quantile};

/// A cell, in milliseconds.
pub fn ms(latencies: &Histogram<u64>, q: f64) -> String {
    match latencies.len() {
        0 => "-".to_owned(),
        _ => format!("{:.3}", latencies.value_at_quantile(q) as f64 / 1e6),
    }
}

/// A cell; a dash for a contender that has no jobs.
pub fn jobs(per_s: f64) -> String {
    if per_s.is_nan() {
        "-".to_owned()
    } else {
        format!("{per_s:.1}")
    }
}

/// A contender's latencies over all slices and, for the noise, p99.9 of its
/// best, median and worst slice.
pub fn report_latencies<C: Copy + Ord, S: Slice>(
    report: &mut Report,
    name: &str,
    findings: &Findings<C, S>,
    contender: C,
) {
    let found: Latencies = findings.pooled(contender);
    let mut us = |metric, latencies: &Histogram<u64>, q| {
        let value = nanos(latencies, q) / 1e3;
        report.row(name, metric, "us", value, latencies.len() as usize);
    };
    us("p50_from_send", &found.from_send, 0.5);
    us("p99_from_send", &found.from_send, 0.99);
    us("p999_from_send", &found.from_send, 0.999);
    us("max_from_send", &found.from_send, 1.0);
    us("p50_from_intended", &found.from_intended, 0.5);
    us("p99_from_intended", &found.from_intended, 0.99);
    us("p999_from_intended", &found.from_intended, 0.999);

    let slices = findings.slices(contender);
    let p999s = slices
        .iter()
        .map(|slice| nanos(&slice.latencies().from_send, 0.999) / 1e3)
        .filter(|value| !value.is_nan());
    for (metric, q) in [("best", 0.0), ("median", 0.5), ("worst", 1.0)] {
        let value = quantile(p999s.clone(), q);
        let metric = format!("p999_from_send_of_the_{metric}_slice");
        report.row(name, &metric, "us", value, slices.len());
    }
    let due = found.from_intended.len() as usize;
    let mut count = |metric, n: u64| report.row(name, metric, "", n as f64, due);
    count("requests", found.from_send.len());
    count("missed", found.missed);
    count("unanswered", found.unanswered);
}

/// A ratio with its name in the report.
pub struct Named {
    pub name: String,
    pub found: Ratio,
}

impl Named {
    pub fn new(name: impl Into<String>, found: Ratio) -> Self {
        Self {
            name: name.into(),
            found,
        }
    }

    /// One that was computed once, from all slices in one.
    pub fn once(name: impl Into<String>, value: f64) -> Self {
        let found = Ratio {
            median: value,
            least: value,
            most: value,
        };
        Self::new(name, found)
    }
}

/// Prints those that could be computed, and reports all.
pub fn print_and_report(ratios: &[Named], report: &mut Report) {
    println!("\nRatios: the median of the slices' own (least to most), or one of all slices.\n");
    for Named { name, found } in ratios {
        report.ratio(name, found.median);
        if found.median.is_nan() {
            continue;
        }
        if found.least == found.most {
            println!("  {name:58} {:.3}", found.median);
        } else {
            println!("  {name:58} {found}");
        }
    }
    println!();
}
