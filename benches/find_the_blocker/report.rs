//! The tables and the ratios.

use std::time::Duration;

use twolane_benches::report::print_table;
use twolane_benches::{Ratio, Report};

use crate::findings::{Findings, Said};

const SECOND: Duration = Duration::from_secs(1);

pub fn print(findings: &[Findings]) {
    print_table(
        "Of all routes",
        &[
            "",
            "stalls",
            "false",
            "behind a stopped thread",
            "innocent requests",
            "throttled",
        ],
        &findings.iter().map(summary).collect::<Vec<_>>(),
    );
    for of in findings {
        let head = ["route", "planted", "reported after", "as"];
        let said: Vec<_> = of.said.iter().map(row).collect();
        print_table(&of.setting.name(), &head, &said);
        for stall in &of.falsely {
            println!("FALSE: {stall}");
        }
    }
}

fn summary(of: &Findings) -> Vec<String> {
    let counts = [of.stalls, of.falsely.len(), of.behind_stopped];
    let mut cells = vec![of.setting.name()];
    cells.extend(counts.map(|count| count.to_string()));
    cells.push(of.innocent_requests.to_string());
    cells.push(
        of.times_throttled
            .map_or_else(String::new, |n| n.to_string()),
    );
    cells
}

fn row(said: &Said) -> Vec<String> {
    let (after, what) = match &said.first {
        Some((after, stall)) => {
            let name = stall.culprit().unwrap_or("code that is not watched");
            let what = format!("{name}: {}", stall.cause());
            (format!("{} ms", after.as_millis()), what)
        }
        None => ("NEVER".to_owned(), String::new()),
    };
    vec![said.route.to_owned(), said.planted.to_owned(), after, what]
}

/// They are fractions and counts of all settings.
pub fn ratios(findings: &[Findings], report: &Report) {
    let said: Vec<&Said> = findings.iter().flat_map(|of| &of.said).collect();
    let share = |name: &str, is: &dyn Fn(&Said) -> bool| {
        let part = said.iter().filter(|said| is(said)).count() as f64;
        report.put(name, Ratio::once(part / said.len() as f64));
    };
    let is_reported = |said: &Said| said.first.is_some();
    let is_soon = |(after, _): &(Duration, _)| *after <= SECOND;
    share("named_fraction", &is_reported);
    share("named_within_a_second_fraction", &|said| {
        said.first.as_ref().is_some_and(is_soon)
    });
    share("right_cause_fraction", &|said| said.has_right_cause);
    let sum = |name: &str, of: fn(&Findings) -> u64| {
        let sum: u64 = findings.iter().map(of).sum();
        report.put(name, Ratio::once(sum as f64));
    };
    sum("false_accusations", |of| of.falsely.len() as u64);
    sum("behind_a_stopped_thread", |of| of.behind_stopped as u64);
    sum("innocent_requests", |of| of.innocent_requests);
}
