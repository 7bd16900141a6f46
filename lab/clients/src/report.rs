//! What all lines together say: the sums that must be zero, and how the jobs' waits
//! compare. Printed, and written as `target/twolane/clients.json`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::lanes::Side;
use crate::resume::Waits;
use crate::rows::{Mark, Shows};
use crate::table::Line;
use crate::trial::{Outcome, Setup};

#[derive(Default)]
pub struct Report {
    lines: Vec<Line>,
    missed: Vec<&'static str>,
}

impl Report {
    pub fn add(&mut self, line: Line) {
        self.lines.push(line);
    }

    /// A client whose server is not there.
    pub fn miss(&mut self, client: &'static str) {
        self.missed.push(client);
    }

    fn recommended(&self) -> impl Iterator<Item = &Line> {
        let lines = self.lines.iter();
        lines.filter(|line| line.mark == Some(Mark::Recommended))
    }

    /// The warned rows, over all their sets of conditions: what they are to show, and
    /// whether they did in any of them.
    fn warned(&self) -> BTreeMap<String, (Shows, bool)> {
        let mut warned = BTreeMap::new();
        for line in &self.lines {
            let Some(shows) = line.shows() else { continue };
            let name = format!("{}: {}", line.client, line.way);
            let (_, shown) = warned.entry(name).or_insert((shows, false));
            *shown |= line.has_shown(shows);
        }
        warned
    }

    /// Prints and writes it. Returns whether all is as the guide says.
    pub fn finish(self) -> std::io::Result<bool> {
        let sum = |of: fn(&Line) -> usize| self.recommended().map(of).sum::<usize>();
        let (stalls, panics, failures) =
            (sum(Line::stalls), sum(Line::panics), sum(Line::failures));
        println!("\nrecommended rows: {stalls} stalls, {panics} panics, {failures} other failures");
        let mut as_said = stalls + panics + failures == 0 && self.missed.is_empty();
        if !self.missed.is_empty() {
            println!(
                "not measured, since their servers are not there: {}",
                self.missed.join("; ")
            );
        }
        for (name, (shows, shown)) in self.warned() {
            if !shown {
                println!("did not fail as the guide says ({shows:?}): {name}");
                as_said = false;
            }
        }
        let mut ratios = Map::new();
        ratios.insert("stalls_recommended".into(), json!(stalls));
        ratios.insert("panics_recommended".into(), json!(panics));
        ratios.insert("failures_recommended".into(), json!(failures));
        let by_hand = "with each request by `io.spawn`";
        for (name, over, words) in [
            ("resume_max_over_two_runtimes", Side::ByHand, by_hand),
            (
                "resume_max_over_two_runtimes_plain",
                Side::TwoRuntimes,
                "used plainly",
            ),
        ] {
            println!("\nlongest wait of a job for its next step, over two plain runtimes {words}:");
            let waits = Waits::of(&self.lines, over);
            if let Some(waits) = &waits {
                println!("  {waits}");
            }
            for (suffix, q) in [("", 0.5), ("_q25", 0.25), ("_q75", 0.75)] {
                let ratio = waits.as_ref().map(|waits| waits.quantile(q));
                ratios.insert(format!("{name}{suffix}"), json!(ratio));
            }
        }
        let file = folder()?.join("clients.json");
        let found = json!({
            "bench": "clients",
            "machine": {"cores": std::thread::available_parallelism().map_or(1, usize::from)},
            "rows": self.lines.iter().flat_map(rows).collect::<Vec<_>>(),
            "ratios": ratios,
        });
        std::fs::write(&file, format!("{found:#}\n"))?;
        println!("written to {}", file.display());
        Ok(as_said)
    }
}

/// A line's figures.
fn rows(line: &Line) -> Vec<Value> {
    let Setup { jobs, warm, cuts } = line.setup;
    let pool = match (warm, cuts) {
        (_, true) => "server cuts",
        (true, _) => "warm",
        (false, _) => "cold",
    };
    let mark = match line.mark {
        None => "peer",
        Some(Mark::Recommended) => "recommended",
        Some(Mark::Warned(_)) => "warned",
        Some(Mark::Tolerated) => "tolerated",
    };
    let contender = format!(
        "{}: {}, {}, {jobs} jobs, {pool} ({mark})",
        line.client, line.way, line.side
    );
    let requests = line.sum(|round| round.requests);
    let jobs = line.sum(|round| round.jobs);
    let rounds = line.rounds.len();
    type Of = fn(&Outcome) -> usize;
    let sums: [(_, usize, Of); 7] = [
        ("stalls", requests, |round| round.stalls),
        ("late_with_the_machine", requests, |round| {
            round.late_with_the_machine
        }),
        ("request_panics", requests, |round| round.request_panics),
        ("request_errors", requests, |round| round.request_errors),
        ("job_panics", jobs, |round| round.job_panics),
        ("job_errors", jobs, |round| round.job_errors),
        ("hung", jobs, |round| round.hung),
    ];
    let sums = sums.map(|(metric, n, of)| (metric, "count", line.sum(of) as f64, n));
    let times = [
        ("request_p50", "ms", line.latency(0.5), requests),
        ("request_p99", "ms", line.latency(0.99), requests),
        ("request_max", "ms", line.latency(1.0), requests),
        ("resume_p50", "ms", line.resume(0.5), rounds),
        ("resume_max", "ms", line.resume(1.0), rounds),
    ];
    // What was not measured is NaN, and so `null`.
    let row = |(metric, unit, value, n)| json!({"contender": contender, "metric": metric, "unit": unit, "value": value, "n": n});
    sums.into_iter().chain(times).map(row).collect()
}

/// `target/twolane`, made if need be. This program is in `target/PROFILE`.
fn folder() -> std::io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).unwrap_or(&program);
    let folder = target.join("twolane");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}
