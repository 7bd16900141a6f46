//! The tables and the ratios.

use twolane_benches::{Column, Findings, Ratio, Report};

pub fn print(found: &Findings, report: &mut Report<'_>) {
    report.table(
        "a process with next to nothing to do, µs of CPU time a second (1,000 are 0.001 of a core)",
        "idle, ",
        &[
            Column::spread("quiet", "quiet"),
            Column::spread("in use", "in_use"),
            Column::median("others", "others"),
        ],
    );
    report.table(
        "echo on the I/O lane beside a saturated CPU lane, ms",
        "echo/",
        &[
            Column::sum("requests", "requests"),
            Column::sum("missed", "missed"),
            Column::pooled("p50", "from_send", 0.5),
            Column::pooled("p99", "from_send", 0.99),
            Column::pooled("p99.9", "from_send", 0.999),
            Column::spread("p99.9 of a slice", "from_send_p999"),
            Column::median("jobs/s", "jobs_per_s"),
            Column::median("others", "others"),
        ],
    );
    report.table(
        "ns each, on a runtime of the current thread",
        "",
        &[
            Column::spread("poll", "poll"),
            Column::spread("request", "request"),
            Column::spread("span, entered", "span"),
            Column::spread("span, new", "new_span"),
        ],
    );
    report.table(
        "batch of 50,000, ns a job",
        "offload/",
        &[
            Column::spread("closure", "closure"),
            Column::spread("CPU time", "closure_cpu"),
            Column::spread("future", "future"),
            Column::median("others", "others"),
        ],
    );

    for (suffix, io) in [("", "two workers"), ("_one_thread", "one thread")] {
        let [off, on] = ["off", "on"].map(|watched| format!("idle, {io}/{watched}"));
        for metric in ["quiet", "in_use"] {
            let name = format!("{metric}{suffix}_added_us_per_s");
            report.put(name, added(found, metric, &on, &off));
        }
    }
    for (name, metric, q) in [
        ("echo_p99", "from_send_p99", 0.99),
        ("echo_p999", "from_send_p999", 0.999),
    ] {
        report.ratio(format!("{name}_on_over_off"), metric, "echo/on", "echo/off");
        let [on, off] = ["echo/on", "echo/off"].map(|name| found.pooled_ms(name, "from_send", q));
        report.put(format!("{name}_on_over_off_pooled"), Ratio::once(on / off));
    }
    report.ratio("echo_jobs_on_over_off", "jobs_per_s", "echo/on", "echo/off");
    for (tier, metric) in [
        ("poll", "poll"),
        ("request", "request"),
        ("span", "span"),
        ("span", "new_span"),
    ] {
        let without = format!("{tier}/without");
        for watched in ["off", "on"] {
            let with = format!("{tier}/{watched}");
            report.put(
                format!("{metric}_{watched}_added_ns"),
                added(found, metric, &with, &without),
            );
        }
    }
    for metric in ["closure", "closure_cpu", "future"] {
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
