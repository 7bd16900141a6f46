//! The printed table, and the file.

use crate::contenders::{BASELINE, EVEN, FLOOR, HIGH, TOKIO_SPAWN, WEIGHED};
use crate::figures::Figures;
use crate::goroutines;
use crate::support::{Ratio, Report, median};

/// In the order of the ratios' suffixes.
const OURS: [&str; 4] = [
    "twolane spawn_cpu, Rayon",
    "twolane spawn, Rayon",
    "twolane spawn_cpu, Runtime",
    "twolane spawn, Runtime",
];
/// Those that keep their jobs off the runtime that submits.
const OFFLOADING: [&str; 6] = [
    "tokio_rayon",
    "rayon + oneshot",
    "rayon + async-task",
    "spawn_blocking",
    "second runtime",
    "JoinSet::spawn_on",
];
const OTHERS: [&str; 5] = [WEIGHED, FLOOR, TOKIO_SPAWN, goroutines::NAME, BASELINE];

/// Heading, metrics (the first with the spread of its rounds), unit.
type Columns = &'static [(&'static str, &'static str)];
const LATENCIES: Columns = &[
    ("hot", "hot"),
    ("cpu", "hot cpu"),
    ("cold p50", "cold"),
    ("p99", "cold p99"),
    ("cpu", "cold cpu"),
    ("1 MiB", "1 MiB"),
];
const BUSY: Columns = &[
    ("50 us, p50", "busy"),
    ("p99", "busy p99"),
    ("load", "busy load"),
    ("5 us, p50", "busy short"),
    ("p99", "busy short p99"),
    ("load", "busy short load"),
];
const BATCHES: Columns = &[
    ("100", "batch of 100"),
    ("large", "batch"),
    ("cpu", "batch cpu"),
    ("large, from two", "batch from two"),
    ("allocations", "allocations, batch"),
    ("bytes", "bytes, batch"),
    ("allocations, hot", "allocations, hot"),
    ("bytes, hot", "bytes, hot"),
];

pub fn report(figures: &Figures) {
    table(
        "round trip, ns; cpu: ns of CPU time a trip",
        LATENCIES,
        figures,
    );
    table(
        "round trip in a busy lane, ns; load: the part of the lane's time that others used",
        BUSY,
        figures,
    );
    table(
        "batch, ns a job; allocations and bytes a job",
        BATCHES,
        figures,
    );

    let mut report = Report::new("offload");
    for (contender, metric, rounds) in figures.rows() {
        let unit = match metric {
            _ if metric.starts_with("allocations") => "count",
            _ if metric.starts_with("bytes") => "bytes",
            _ if metric.ends_with("load") => "fraction",
            _ => "ns",
        };
        let value = median(rounds.iter().copied());
        report.row(contender, metric, unit, value, rounds.len());
    }
    println!("\nmedian (range) of the rounds' own");
    for (name, ratio) in ratios(figures) {
        println!("{name:44} {ratio}");
        report.ratio(&name, ratio.median);
    }
    if let Some(rounds) = figures.rounds(OURS[0], "allocations, batch") {
        let allocations = median(rounds.iter().copied());
        println!("{:44} {allocations:.3}", "allocs_per_job");
        report.ratio("allocs_per_job", allocations);
    }
    report.write();
}

fn table(title: &str, columns: Columns, figures: &Figures) {
    println!("\n{title}");
    print!("{:28}", "");
    for (heading, _) in columns {
        print!(" {heading:>16}");
    }
    println!();
    for contender in OURS
        .iter()
        .chain([&HIGH, &EVEN])
        .chain(&OFFLOADING)
        .chain(&OTHERS)
    {
        let values: Vec<_> = columns
            .iter()
            .map(|(_, metric)| figures.median(contender, metric))
            .collect();
        if values.iter().all(Option::is_none) {
            continue;
        }
        print!("{contender:28}");
        for value in values {
            match value {
                Some(value) if value < 100.0 => print!(" {value:>16.2}"),
                Some(value) => print!(" {value:>16.0}"),
                None => print!(" {:>16}", "-"),
            }
        }
        println!();
    }
}

fn ratios(figures: &Figures) -> Vec<(String, Ratio)> {
    let in_batches: Vec<&str> = OFFLOADING.into_iter().chain([TOKIO_SPAWN]).collect();
    let go = [goroutines::NAME];
    let wanted: [(&str, &'static str, &[&str]); 12] = [
        ("roundtrip_over_floor_hot", "hot", &[FLOOR]),
        ("roundtrip_over_floor_cold", "cold", &[FLOOR]),
        ("roundtrip_over_best_peer_hot", "hot", &OFFLOADING),
        ("roundtrip_over_best_peer_cold", "cold", &OFFLOADING),
        ("roundtrip_cpu_over_best_peer_hot", "hot cpu", &OFFLOADING),
        ("roundtrip_cpu_over_best_peer_cold", "cold cpu", &OFFLOADING),
        ("roundtrip_busy_over_best_peer", "busy", &OFFLOADING),
        (
            "roundtrip_busy_short_over_best_peer",
            "busy short",
            &OFFLOADING,
        ),
        ("batch_over_best_peer", "batch", &in_batches),
        ("batch_of_100_over_best_peer", "batch of 100", &in_batches),
        (
            "batch_from_two_over_best_peer",
            "batch from two",
            &in_batches,
        ),
        ("batch_over_go", "batch", &go),
    ];
    let suffixes = ["", "_future", "_runtime", "_runtime_future"];
    let ours: Vec<_> = OURS.into_iter().zip(suffixes).collect();
    let mut found = Vec::new();
    for (name, metric, peers) in wanted {
        let of_weights = [(HIGH, "_high"), (EVEN, "_no_nice")];
        for (ours, suffix) in ours.iter().copied().chain(of_weights) {
            if let Some(ratio) = figures.over_best(ours, peers, metric) {
                found.push((format!("{name}{suffix}"), ratio));
            }
        }
    }
    found
}
