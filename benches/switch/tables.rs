//! What is printed, and what is written.

use crate::case::Case;
use crate::contender::{Contender, Entry, Width};
use crate::found::Found;
use crate::ratios::Line;
use crate::support::{Report, median, quantile};

const TABLES: [(&str, [Case; 3]); 4] = [
    (
        "switch",
        [Case::SwitchAlone, Case::SwitchTwo, Case::Switch100],
    ),
    (
        "start and join",
        [Case::Start, Case::Start1000, Case::SpawnCpu],
    ),
    (
        "wake themselves, and each other",
        [Case::SelfWake, Case::PingPong, Case::WakeBatch],
    ),
    (
        "yield_if_due, not due",
        [Case::YieldIfDueRaw, Case::EmptyLoop, Case::YieldIfDue],
    ),
];

/// `skipped`: why there are no goroutines.
pub fn print(skipped: Option<&str>, found: &Found) {
    println!("ns each: median (least to most) of the rounds");
    for width in Width::ALL {
        for (title, cases) in TABLES {
            let [first, second, third] = cases.map(Case::title);
            println!("\n{title}, {width}");
            println!("{:22} {first:>24} {second:>24} {third:>24}", "");
            for entry in Entry::of(width) {
                let name = entry.contender;
                let cells = cases.map(|case| found.rounds(entry, case));
                match skipped {
                    Some(why) if name == Contender::Goroutines => {
                        println!("{name:22} skipped: {why}");
                    }
                    _ if cells.iter().all(Option::is_none) => {}
                    _ => {
                        let [first, second, third] = cells.map(cell);
                        println!("{name:22} {first:>24} {second:>24} {third:>24}");
                    }
                }
            }
        }
    }
}

fn cell(rounds: Option<Vec<f64>>) -> String {
    let Some(rounds) = rounds else {
        return "-".to_owned();
    };
    let [least, median, most] = [0.0, 0.5, 1.0].map(|q| ns(quantile(rounds.iter().copied(), q)));
    format!("{median} ({least} to {most})")
}

/// Three digits that matter.
fn ns(ns: f64) -> String {
    match ns {
        ns if ns < 10.0 => format!("{ns:.2}"),
        ns if ns < 100.0 => format!("{ns:.1}"),
        ns => format!("{ns:.0}"),
    }
}

pub fn write(rounds: usize, skipped: Option<&str>, found: &Found, lines: &[Line]) {
    let mut report = Report::new("switch");
    for entry in Entry::all() {
        let name = entry.to_string();
        if let (Contender::Goroutines, Some(why)) = (entry.contender, skipped) {
            report.row(&name, &format!("skipped: {why}"), "", f64::NAN, 0);
        }
        for case in Case::ALL {
            if let Some(figures) = found.rounds(entry, case) {
                report.row(&name, case.key(), "ns", median(figures), rounds);
            }
        }
    }
    for line in lines {
        // One that was not measured is `null`.
        let ratio = line.ratio.map_or(f64::NAN, |ratio| ratio.median);
        report.ratio(&line.name, ratio);
    }
    report.write();
}
