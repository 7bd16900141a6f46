//! The tables and the ratios.

use twolane_benches::report::print_table;
use twolane_benches::{Column, Ratio, Report};

use crate::findings::{Findings, Said};

pub fn print(findings: &[Findings], report: &Report) {
    let columns = [
        Column::sum("stalls", "stalls"),
        Column::sum("false", "false"),
        Column::sum("behind a stopped thread", "behind_stopped"),
        Column::sum("innocent requests", "innocent_requests"),
        Column::sum("throttled", "throttled"),
    ];
    report.table("Of all routes", "", &columns);
    for of in findings {
        let head = ["route", "planted", "reported after", "as"];
        let said: Vec<_> = of.said.iter().map(row).collect();
        print_table(&of.setting.name(), &head, &said);
        for stall in &of.falsely {
            println!("FALSE: {stall}");
        }
    }
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

/// They are a fraction and counts of all settings.
pub fn ratios(findings: &[Findings], report: &Report) {
    let said: Vec<&Said> = findings.iter().flat_map(|of| &of.said).collect();
    let right = said.iter().filter(|said| said.has_right_cause).count();
    let falsely: usize = findings.iter().map(|of| of.falsely.len()).sum();
    let requests: u64 = findings.iter().map(|of| of.innocent_requests).sum();
    let put = |name, value| report.put(name, Ratio::once(value));
    put("right_cause_fraction", right as f64 / said.len() as f64);
    put("false_accusations", falsely as f64);
    put("innocent_requests", requests as f64);
}
