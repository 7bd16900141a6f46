//! The tables, and the file of figures.

use std::fmt::Write;
use std::io;
use std::time::Duration;

use serde_json::json;

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

pub fn write(findings: &[Findings]) -> io::Result<()> {
    let mut rows = Vec::new();
    for of in findings {
        let setting = format!("{}, {}", of.setting.tier.name(), of.setting.place());
        for said in &of.said {
            if let Some((after, _)) = &said.first {
                let contender = format!("{setting}: {}", said.route);
                let ms = after.as_secs_f64() * 1e3;
                rows.push(
                    json!({"contender": contender, "metric": "reported_after", "unit": "ms",
                    "value": ms, "n": 1}),
                );
            }
        }
        rows.push(
            json!({"contender": setting, "metric": "innocent_requests", "unit": "",
            "value": of.innocent_requests, "n": 1}),
        );
    }
    let due = |is_named: bool| {
        let of_tier = move |of: &&Findings| (of.setting.tier != Tier::Nothing) == is_named;
        let said = findings.iter().filter(of_tier).flat_map(|of| &of.said);
        said.filter(|said| said.is_due).collect::<Vec<_>>()
    };
    let share = |of: &[&Said], is: &dyn Fn(&Said) -> bool| {
        of.iter().filter(|said| is(said)).count() as f64 / of.len() as f64
    };
    let (named, unnamed) = (due(true), due(false));
    let is_reported = |said: &Said| said.first.is_some();
    let is_soon = |said: &Said| {
        said.first
            .as_ref()
            .is_some_and(|(after, _)| *after <= SECOND)
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let falsely: usize = findings.iter().map(|of| of.falsely.len()).sum();
    let behind_stopped: usize = findings.iter().map(|of| of.behind_stopped).sum();
    let innocent: u64 = findings.iter().map(|of| of.innocent_requests).sum();
    let all = json!({
        "bench": "find_the_blocker",
        "machine": {"cores": cores},
        "rows": rows,
        "ratios": {
            "named_fraction": share(&named, &is_reported),
            "named_within_a_second_fraction": share(&named, &is_soon),
            "right_cause_fraction": share(&named, &|said| said.has_right_cause),
            "reported_without_a_name_fraction": share(&unnamed, &is_reported),
            "false_accusations": falsely,
            "behind_a_stopped_thread": behind_stopped,
            "innocent_requests": innocent,
        },
    });
    println!("{:#}", all["ratios"]);
    std::fs::create_dir_all("target/twolane")?;
    std::fs::write("target/twolane/find_the_blocker.json", format!("{all:#}\n"))
}
