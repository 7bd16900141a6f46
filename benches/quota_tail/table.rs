//! What is printed, and what the file says of each contender.

use std::time::Duration;

use crate::Findings;
use crate::contender::Contender::{self, *};
use crate::slice::Slice;
use crate::support::Report;
use crate::tail::figures::{self, Named, ms};
use crate::tail::findings::{FROM_INTENDED, FROM_SEND};

pub fn print(findings: &Findings, cores: usize) {
    println!(
        "\n{:29} {:>7} {:>8} {:>7} {:>9} {:>9} {:>9} {:>10} {:>7} {:>15} {:>10} {:>6}",
        "ms", "", "", "", "from send", "", "", "intended", "", "throttled", "", ""
    );
    println!(
        "{:29} {:>7} {:>8} {:>7} {:>9} {:>9} {:>9} {:>10} {:>7} {:>15} {:>10} {:>6}",
        "jobs run on",
        "threads",
        "requests",
        "missed",
        "p50",
        "p99",
        "p99.9",
        "p99.9",
        "jobs/s",
        "periods",
        "ms a s",
        "others"
    );
    for &contender in findings.contenders() {
        let found = findings.pooled(contender);
        let send = &found.from_send;
        println!(
            "{:29} {:>7.0} {:>8} {:>7} {:>9} {:>9} {:>9} {:>10} {:>7} {:>15} {:>10.1} {:>5.0}%",
            contender.title(cores),
            findings.mean(contender, |slice| slice.threads as f64),
            send.len(),
            found.missed + found.unanswered,
            ms(send, 0.5),
            ms(send, 0.99),
            ms(send, 0.999),
            ms(&found.from_intended, 0.999),
            figures::jobs(findings.mean(contender, |slice| slice.jobs_per_s)),
            format!(
                "{} of {}",
                throttled(findings, contender),
                periods(findings, contender)
            ),
            throttled_ms(findings, contender) / seconds(findings, contender),
            findings.mean(contender, |slice| slice.others) * 100.0,
        );
    }
}

fn sum<T: std::iter::Sum>(
    findings: &Findings,
    contender: Contender,
    of: impl Fn(&Slice) -> T,
) -> T {
    findings.slices(contender).iter().map(of).sum()
}

fn throttled(findings: &Findings, contender: Contender) -> u64 {
    sum(findings, contender, |slice| slice.throttling.throttled)
}

fn periods(findings: &Findings, contender: Contender) -> u64 {
    sum(findings, contender, |slice| slice.throttling.periods)
}

fn throttled_ms(findings: &Findings, contender: Contender) -> f64 {
    let time: Duration = sum(findings, contender, |slice| slice.throttling.time);
    time.as_secs_f64() * 1e3
}

fn seconds(findings: &Findings, contender: Contender) -> f64 {
    sum(findings, contender, |slice| slice.measured.as_secs_f64())
}

pub fn report(findings: &Findings, report: &mut Report) {
    for &contender in findings.contenders() {
        let name = contender.name();
        figures::report_latencies(report, name, findings, contender);
        let slices = findings.slices(contender).len();
        let mut mean = |metric, unit, of: fn(&Slice) -> f64| {
            report.row(name, metric, unit, findings.mean(contender, of), slices);
        };
        mean("jobs_per_s", "1/s", |slice| slice.jobs_per_s);
        mean("threads", "", |slice| slice.threads as f64);
        mean("available_parallelism", "", |slice| slice.available as f64);
        mean("others", "of all cores", |slice| slice.others);
        let (periods, throttled) = (periods(findings, contender), throttled(findings, contender));
        report.row(name, "nr_periods", "", periods as f64, slices);
        report.row(name, "nr_throttled", "", throttled as f64, slices);
        let throttled_ms = throttled_ms(findings, contender);
        report.row(name, "throttled_time", "ms", throttled_ms, slices);
    }
}

/// Latencies and jobs by the slices; of throttled periods there may be none in
/// a slice, so theirs are of all slices in one (NaN where the other has none
/// at all).
pub fn ratios(findings: &Findings) -> Vec<Named> {
    let mut all = Vec::new();
    for (name, q) in [("p99", 0.99), ("p999", 0.999)] {
        for (other, under) in [
            ("alone", IoAlone),
            ("unpaced", TwolaneUnpaced),
            ("second_runtime_available", SecondRuntimeAvailable),
            ("second_runtime_cores", SecondRuntimeCores),
        ] {
            let name = format!("{name}_twolane_over_{other}");
            for (counted, suffix) in [(FROM_SEND, ""), (FROM_INTENDED, "_intended")] {
                let name = format!("{name}{suffix}");
                let pooled = findings.pooled_latency_ratio(counted, q, Twolane, under);
                let by_slices = findings.latency_ratio(counted, q, Twolane, under);
                all.push(Named::new(&name, by_slices));
                all.push(Named::once(format!("{name}_pooled"), pooled));
            }
        }
    }
    for (other, under) in [
        ("unpaced", TwolaneUnpaced),
        ("cores_unpaced", TwolaneCoresUnpaced),
        ("second_runtime_available", SecondRuntimeAvailable),
        ("second_runtime_cores", SecondRuntimeCores),
    ] {
        let jobs = findings.ratio(|slice| slice.jobs_per_s, Twolane, under);
        all.push(Named::new(
            format!("cpu_throughput_twolane_over_{other}"),
            jobs,
        ));
        let periods = [Twolane, under].map(|it| match findings.slices(it) {
            [] => f64::NAN,
            _ => throttled(findings, it) as f64,
        });
        all.push(Named::once(
            format!("nr_throttled_twolane_over_{other}"),
            over(periods),
        ));
        let time = [Twolane, under].map(|it| match findings.slices(it) {
            [] => f64::NAN,
            _ => throttled_ms(findings, it),
        });
        all.push(Named::once(
            format!("throttled_time_twolane_over_{other}"),
            over(time),
        ));
    }
    all
}

/// Over nothing there is no ratio, not an infinite one.
fn over([over, under]: [f64; 2]) -> f64 {
    if under == 0.0 { f64::NAN } else { over / under }
}
