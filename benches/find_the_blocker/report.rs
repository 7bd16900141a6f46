//! The tables and the ratios.

use std::time::Duration;

use twolane_benches::report::print_table;
use twolane_benches::{Ratio, Report};

use crate::findings::{Findings, Said};
use crate::tier::Tier;

const SECOND: Duration = Duration::from_secs(1);

pub fn print(findings: &[Findings]) {
    let mut places: Vec<_> = findings.iter().map(|of| of.setting.place()).collect();
    places.dedup();
    for place in &places {
        let here = || findings.iter().filter(|of| of.setting.place() == *place);
        let summaries: Vec<_> = here().map(summary).collect();
        print_table(
            place,
            &[
                "",
                "stalls",
                "false",
                "behind a stopped thread",
                "innocent requests",
                "throttled",
            ],
            &summaries,
        );
        let said = here().flat_map(|of| of.said.iter().map(|said| row(of.setting.tier, said)));
        let head = ["route", "planted", "watched", "reported after", "as"];
        print_table("", &head, &said.collect::<Vec<_>>());
        for stall in here().flat_map(|of| &of.falsely) {
            println!("FALSE: {stall}");
        }
        if place.ends_with("1 worker") {
            println!();
            let first = here()
                .flat_map(|of| &of.said)
                .filter_map(|said| said.first.as_ref());
            first.for_each(|(_, stall)| println!("{stall}"));
        }
    }
}

fn summary(of: &Findings) -> Vec<String> {
    let counts = [of.stalls, of.falsely.len(), of.behind_stopped];
    let mut cells = vec![of.setting.tier.name().to_owned()];
    cells.extend(counts.map(|count| count.to_string()));
    cells.push(of.innocent_requests.to_string());
    cells.push(
        of.times_throttled
            .map_or(String::new(), |times| times.to_string()),
    );
    cells
}

fn row(tier: Tier, said: &Said) -> Vec<String> {
    let (after, what) = match (&said.first, said.is_due) {
        (Some((after, stall)), _) => {
            let name = stall.culprit().unwrap_or("code that is not watched");
            let what = format!("{name}: {}", stall.cause());
            (format!("{} ms", after.as_millis()), what)
        }
        (None, true) => ("NEVER".to_owned(), String::new()),
        (None, false) => ("-".to_owned(), "(see `tier.rs`)".to_owned()),
    };
    let [route, planted, tier] = [said.route, said.planted, tier.name()].map(str::to_owned);
    vec![route, planted, tier, after, what]
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
