//! What is printed, and what the file says of each contender.

use crate::Findings;
use crate::support::Report;
use crate::tail::figures::{self, ms};

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
            figures::jobs(findings.mean(contender, |slice| slice.jobs_per_s)),
            findings.mean(contender, |slice| slice.others) * 100.0,
        );
    }
}

pub fn report(findings: &Findings, report: &mut Report) {
    for &contender in findings.contenders() {
        let name = contender.name();
        if let Some(reason) = findings.skipped(contender) {
            report.row(name, &format!("skipped: {reason}"), "", f64::NAN, 0);
            continue;
        }
        figures::report_latencies(report, name, findings, contender);
        let n = findings.slices(contender).len();
        let jobs = findings.mean(contender, |slice| slice.jobs_per_s);
        report.row(name, "jobs_per_s", "1/s", jobs, n);
        let others = findings.mean(contender, |slice| slice.others);
        report.row(name, "others", "of all cores", others, n);
    }
}
