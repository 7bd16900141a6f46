//! The tables and the ratios.

use twolane_benches::{Column, Findings, Ratio, Report};

pub fn print(report: &Report) {
    report.table(
        "a process with next to nothing to do, µs of CPU time a second (1,000 are 0.001 of a core)",
        "idle, ",
        &[
            Column::spread("quiet", "quiet"),
            Column::spread("in use", "in_use"),
        ],
    );
    report.table(
        "ns each, on a runtime of the current thread",
        "",
        &[
            Column::spread("poll", "poll"),
            Column::spread("request", "request"),
            Column::spread("span, entered", "span"),
        ],
    );
    report.table(
        "batch of 50,000, ns a job",
        "offload/",
        &[
            Column::spread("closure", "closure"),
            Column::spread("CPU time", "closure_cpu"),
        ],
    );

    for (suffix, io) in [("", "two workers"), ("_one_thread", "one thread")] {
        let [off, on] = ["off", "on"].map(|watched| format!("idle, {io}/{watched}"));
        for metric in ["quiet", "in_use"] {
            let name = format!("{metric}{suffix}_added_us_per_s");
            report.put(name, added(&report.found, metric, &on, &off));
        }
    }
    for tier in ["poll", "request", "span"] {
        let without = format!("{tier}/without");
        for watched in ["off", "on"] {
            let added = added(&report.found, tier, &format!("{tier}/{watched}"), &without);
            report.put(format!("{tier}_{watched}_added_ns"), added);
        }
    }
    for metric in ["closure", "closure_cpu"] {
        let name = format!("offload_{metric}_on_over_off");
        report.ratio(name, metric, "offload/on", "offload/off");
    }
}

/// What one contender has more than the other of the same round.
fn added(found: &Findings, metric: &str, with: &str, without: &str) -> Ratio {
    let (with, without) = (found.rounds(with, metric), found.rounds(without, metric));
    let added: Vec<f64> = with.iter().zip(without).map(|(a, b)| a - b).collect();
    Ratio::of_rounds(&added, &vec![1.0; added.len()])
}
