//! What is printed, and what the file says of each contender.

use hdrhistogram::Histogram;

use crate::contender::Contender;
use crate::findings::Findings;
use crate::slice::Slice;
use crate::support::{Report, quantile};

pub fn print(findings: &Findings, cores: usize) {
    println!(
        "\n{:30} {:>8} {:>7} {:>9} {:>9} {:>9} {:>9} {:>10} {:>7} {:>7}",
        "ms", "", "", "from send", "", "", "", "intended", "", ""
    );
    println!(
        "{:30} {:>8} {:>7} {:>9} {:>9} {:>9} {:>9} {:>10} {:>7} {:>7}",
        "jobs run on",
        "requests",
        "missed",
        "p50",
        "p99",
        "p99.9",
        "max",
        "p99.9",
        "jobs/s",
        "others"
    );
    for &contender in findings.contenders() {
        let title = contender.title(cores);
        if let Some(reason) = findings.skipped(contender) {
            println!("{title:30} skipped: {reason}");
            continue;
        }
        let found = findings.pooled(contender);
        let send = &found.from_send;
        println!(
            "{title:30} {:>8} {:>7} {:>9} {:>9} {:>9} {:>9} {:>10} {:>7} {:>6.0}%",
            send.len(),
            found.missed + found.unanswered,
            ms(send, 0.5),
            ms(send, 0.99),
            ms(send, 0.999),
            ms(send, 1.0),
            ms(&found.from_intended, 0.999),
            match mean_jobs(findings, contender) {
                jobs if jobs.is_nan() => "-".to_owned(),
                jobs => format!("{jobs:.1}"),
            },
            others(findings, contender) * 100.0,
        );
    }
}

fn ms(latencies: &Histogram<u64>, q: f64) -> String {
    match latencies.len() {
        0 => "-".to_owned(),
        _ => format!("{:.3}", latencies.value_at_quantile(q) as f64 / 1e6),
    }
}

fn mean_jobs(findings: &Findings, contender: Contender) -> f64 {
    mean(findings.slices(contender), |slice| slice.jobs_per_s)
}

fn others(findings: &Findings, contender: Contender) -> f64 {
    mean(findings.slices(contender), |slice| slice.others)
}

fn mean(slices: &[Slice], of: impl Fn(&Slice) -> f64) -> f64 {
    slices.iter().map(of).sum::<f64>() / slices.len() as f64
}

/// Everything of the table and, for the noise, p99.9 of the best and the worst
/// slice.
pub fn report(findings: &Findings, report: &mut Report) {
    for &contender in findings.contenders() {
        let name = contender.name();
        if findings.skipped(contender).is_some() {
            report.row(name, "skipped", "", f64::NAN, 0);
            continue;
        }
        let found = findings.pooled(contender);
        let sent = found.from_send.len() as usize;
        let due = found.from_intended.len() as usize;
        let mut us = |metric, latencies: &Histogram<u64>, q| {
            let value = match latencies.len() {
                0 => f64::NAN,
                _ => latencies.value_at_quantile(q) as f64 / 1e3,
            };
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
            .map(|slice| slice.latencies.from_send.value_at_quantile(0.999) as f64 / 1e3);
        for (metric, q) in [("best", 0.0), ("median", 0.5), ("worst", 1.0)] {
            let value = quantile(p999s.clone(), q);
            let metric = format!("p999_from_send_of_the_{metric}_slice");
            report.row(name, &metric, "us", value, slices.len());
        }
        report.row(name, "requests", "", sent as f64, due);
        report.row(name, "missed", "", found.missed as f64, due);
        report.row(name, "unanswered", "", found.unanswered as f64, due);
        let jobs = mean_jobs(findings, contender);
        report.row(name, "jobs_per_s", "1/s", jobs, slices.len());
        let others = others(findings, contender);
        report.row(name, "others", "of all cores", others, slices.len());
    }
}
