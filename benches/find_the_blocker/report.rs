//! The tables and the ratios.

use std::fmt::Write;
use std::time::Duration;

use twolane_benches::{Ratio, Report};

use crate::findings::{Findings, Said};
use crate::tier::Tier;

const SECOND: Duration = Duration::from_secs(1);

pub fn print(findings: &[Findings]) {
    let mut text = String::new();
    let mut places: Vec<_> = findings.iter().map(|of| of.setting.place()).collect();
    places.dedup();
    for place in &places {
        let _ = writeln!(text, "\n{place}\n");
        let here = findings.iter().filter(|of| of.setting.place() == *place);
        for of in here.clone() {
            summary(&mut text, of);
        }
        let _ = writeln!(
            text,
            "\n  route    planted                    watched    reported after  as"
        );
        for of in here {
            for said in &of.said {
                row(&mut text, of.setting.tier, said);
            }
            for stall in &of.falsely {
                let _ = writeln!(text, "  FALSE: {stall}");
            }
        }
    }
    if let Some(place) = places.iter().find(|place| place.ends_with("1 worker")) {
        let _ = writeln!(text, "\nWhat was said, {place}:\n");
        let here = findings.iter().filter(|of| of.setting.place() == *place);
        for (_, stall) in here
            .flat_map(|of| &of.said)
            .filter_map(|said| said.first.as_ref())
        {
            let _ = writeln!(text, "  {}", stall.to_string().replace('\n', "\n      "));
        }
    }
    println!("{text}");
}

fn summary(text: &mut String, of: &Findings) {
    let throttled = of.times_throttled.map_or(String::new(), |times| {
        format!(", stopped {times} times for its quota")
    });
    let stopped = match of.behind_stopped {
        0 => String::new(),
        waited => format!(", {waited} waited for a lock of a thread without quota"),
    };
    let _ = writeln!(
        text,
        "  {:10}  {} stalls reported, {} false, of {} requests to the innocent{throttled}{stopped}",
        of.setting.tier.name(),
        of.stalls,
        of.falsely.len(),
        of.innocent_requests,
    );
}

fn row(text: &mut String, tier: Tier, said: &Said) {
    let (route, planted) = (said.route, said.planted);
    let (after, what) = match (&said.first, said.is_due) {
        (Some((after, stall)), _) => {
            let name = stall.culprit().unwrap_or("code that is not watched");
            let what = format!("{name}: {}", stall.cause());
            (format!("{} ms", after.as_millis()), what)
        }
        (None, true) => ("NEVER".to_owned(), String::new()),
        (None, false) => ("-".to_owned(), "(see `tier.rs`)".to_owned()),
    };
    let tier = tier.name();
    let _ = writeln!(
        text,
        "  {route:8} {planted:26} {tier:10} {after:>14}  {what}"
    );
}

/// They are fractions and counts of all settings.
pub fn ratios(findings: &[Findings], report: &mut Report<'_>) {
    let due = |is_named: bool| {
        let of_tier = move |of: &&Findings| (of.setting.tier != Tier::Nothing) == is_named;
        let said = findings.iter().filter(of_tier).flat_map(|of| &of.said);
        said.filter(|said| said.is_due).collect::<Vec<_>>()
    };
    let (named, unnamed) = (due(true), due(false));
    let mut share = |name: &str, of: &[&Said], is: &dyn Fn(&Said) -> bool| {
        let part = of.iter().filter(|said| is(said)).count() as f64;
        report.put(name, Ratio::once(part / of.len() as f64));
    };
    let is_reported = |said: &Said| said.first.is_some();
    let is_soon = |(after, _): &(Duration, _)| *after <= SECOND;
    share("named_fraction", &named, &is_reported);
    share("named_within_a_second_fraction", &named, &|said| {
        said.first.as_ref().is_some_and(is_soon)
    });
    share("right_cause_fraction", &named, &|said| said.has_right_cause);
    share("reported_without_a_name_fraction", &unnamed, &is_reported);
    let mut sum = |name: &str, of: fn(&Findings) -> u64| {
        let sum: u64 = findings.iter().map(of).sum();
        report.put(name, Ratio::once(sum as f64));
    };
    sum("false_accusations", |of| of.falsely.len() as u64);
    sum("behind_a_stopped_thread", |of| of.behind_stopped as u64);
    sum("innocent_requests", |of| of.innocent_requests);
}
