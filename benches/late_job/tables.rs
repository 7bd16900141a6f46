//! What is printed, and what is written.

use crate::args::Plan;
use crate::contender::{Contender, Entry};
use crate::outcome::{Count, Found, Outcome, Tail};
use crate::ratios::Line;
use crate::support::{Report, median, quantile};

/// A line for each run, as it ends.
pub fn print_run(round: usize, entry: Entry, outcome: &Outcome) {
    let total = match (outcome.first(), outcome.total()) {
        (Some(first), Some(total)) => format!("long ones end {first:.2} to {total:.2} s; "),
        _ => String::new(),
    };
    let tail = |count| outcome.tail(count).map_or(String::new(), tail);
    println!(
        "round {}: {entry}: {total}small ones p50 / p99 / max, ms: {}; from the call: {}",
        round + 1,
        tail(Count::Intended),
        tail(Count::Submission),
    );
    if let Some(cores) = outcome.others.filter(|cores| *cores > 0.1) {
        println!("    others had {cores:.1} of the cores meanwhile");
    }
    if outcome.too_late() > 0 {
        println!(
            "    {} of {} small jobs arrived when no long one was left",
            outcome.too_late(),
            outcome.late.len()
        );
    }
}

fn tail(tail: Tail) -> String {
    let Tail { p50, p99, max } = tail;
    format!("{} / {} / {}", ms(p50), ms(p99), ms(max))
}

/// Three digits that matter.
fn ms(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.3}"),
        ms if ms < 100.0 => format!("{ms:.1}"),
        ms => format!("{ms:.0}"),
    }
}

pub fn print(entries: &[Entry], skipped: &[(Contender, String)], found: &Found) {
    print_totals(entries, found);
    for (contender, why) in skipped {
        println!("{contender:46} skipped: {why}");
    }
    println!(
        "\nlatency of the small jobs, ms (medians over the rounds); awaited: as a task of the \
         I/O runtime sees it"
    );
    println!(
        "{:46} {:>23} {:>23} {:>17} {:>11}",
        "", "since meant to arrive", "since the call", "awaited", "source late"
    );
    println!(
        "{:46} {:>23} {:>23} {:>17} {:>11}",
        "", "p50 / p99 / max", "p50 / p99 / max", "p50 / p99", "p99"
    );
    for &entry in entries {
        let of = |count| tail_of_rounds(found, entry, count);
        let whole = |count| of(count).map_or(String::new(), tail);
        println!(
            "{entry:46} {:>23} {:>23} {:>17} {:>11}",
            whole(Count::Intended),
            whole(Count::Submission),
            of(Count::IntendedToAwaited).map_or("-".to_owned(), |Tail { p50, p99, .. }| format!(
                "{} / {}",
                ms(p50),
                ms(p99)
            )),
            of(Count::Source).map_or(String::new(), |late| ms(late.p99)),
        );
    }
}

fn print_totals(entries: &[Entry], found: &Found) {
    println!("\nthe long jobs' ends, s (medians over the rounds)");
    println!(
        "{:46} {:>10} {:>10} {:>20}",
        "", "first", "total", "totals of the rounds"
    );
    for &entry in entries.iter().filter(|e| e.contender.has_queue()) {
        let (Some(first), Some(total)) = (
            found.figures(entry, Outcome::first),
            found.figures(entry, Outcome::total),
        ) else {
            continue;
        };
        let at = |q| quantile(total.iter().copied(), q);
        println!(
            "{entry:46} {:>10.3} {:>10.2} {:>20}",
            median(first),
            at(0.5),
            format!("{:.2} to {:.2}", at(0.0), at(1.0)),
        );
    }
}

/// The median of the rounds' figures.
fn tail_of_rounds(found: &Found, entry: Entry, count: Count) -> Option<Tail> {
    let of = |figure: fn(Tail) -> f64| {
        let figures = found.figures(entry, |outcome| outcome.tail(count).map(figure));
        figures.map(median)
    };
    Some(Tail {
        p50: of(|tail| tail.p50)?,
        p99: of(|tail| tail.p99)?,
        max: of(|tail| tail.max)?,
    })
}

pub fn print_ratios(lines: &[Line]) {
    println!("\nmedian (range) of the rounds' own");
    for Line { name, ratio, unit } in lines {
        let ratio = ratio.map_or("not run".to_owned(), |ratio| ratio.to_string());
        println!("{name:60} {ratio} {unit}");
    }
}

pub fn write(
    plan: &Plan,
    entries: &[Entry],
    skipped: &[(Contender, String)],
    found: &Found,
    lines: &[Line],
) {
    let mut report = Report::new("late_job");
    report.row("plan", "long_jobs", "jobs", plan.jobs as f64, 1);
    report.row("plan", "k", "fib", f64::from(plan.k), 1);
    for (contender, why) in skipped {
        let why = format!("skipped: {why}");
        report.row(&contender.to_string(), &why, "", f64::NAN, 0);
    }
    for &entry in entries {
        let rounds = found.of(entry);
        let long = rounds.iter().map(|o| o.long_ends.len()).sum();
        let late = rounds.iter().map(|o| o.late.len()).sum();
        let name = entry.to_string();
        for (metric, figure) in [
            ("first_long_end", Outcome::first as fn(&Outcome) -> _),
            ("total", Outcome::total),
        ] {
            if let Some(figures) = found.figures(entry, figure) {
                for (round, figure) in figures.iter().enumerate() {
                    let metric = format!("{metric}, round {}", round + 1);
                    report.row(&name, &metric, "s", *figure, plan.jobs);
                }
                report.row(&name, metric, "s", median(figures), long);
            }
        }
        if let Some(cores) = found.figures(entry, |o| o.others) {
            let rounds = cores.len();
            report.row(&name, "cores_others_had", "cores", median(cores), rounds);
        }
        for count in Count::ALL {
            for (round, outcome) in rounds.iter().enumerate() {
                let n = outcome.late.len();
                for (figure, value) in figures(outcome.tail(count)) {
                    let metric = format!("{}_{figure}, round {}", count.key(), round + 1);
                    report.row(&name, &metric, "ms", value, n);
                }
            }
            for (figure, value) in figures(tail_of_rounds(found, entry, count)) {
                let metric = format!("{}_{figure}", count.key());
                report.row(&name, &metric, "ms", value, late);
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

fn figures(tail: Option<Tail>) -> impl Iterator<Item = (&'static str, f64)> {
    let named = |Tail { p50, p99, max }| [("p50", p50), ("p99", p99), ("max", max)];
    tail.map(named).into_iter().flatten()
}
