//! What is printed, and what is written.

use crate::args::Plan;
use crate::contender::{Case, Contender};
use crate::ratios::Line;
use crate::sample::{Found, Sample};
use crate::support::{Report, median, quantile};

/// Its key in the report, its unit, and the figure of a round.
type Metric = (&'static str, &'static str, fn(&Sample) -> Option<f64>);

const SUBMIT: Metric = ("submit", "s", |s| Some(s.submit));
const WALL: Metric = ("wall", "s", |s| Some(s.wall));
const CPU: Metric = ("cpu", "s", |s| Some(s.cpu));
const OTHERS: Metric = ("cores_others_had", "cores", |s| s.others);
const RESIDENT: Metric = ("resident", "B", |s| Some(s.resident));
const RESIDENT_EACH: Metric = ("resident_each", "B", |s| Some(s.resident / s.count));
const PEAK: Metric = ("peak_resident", "B", |s| Some(s.resident));
const ALLOCATIONS: Metric = ("allocations_each", "", |s| Some(s.allocations? / s.count));
const ALLOCATED: Metric = ("allocated_each", "B", |s| Some(s.allocated? / s.count));

fn metrics(case: Case) -> &'static [Metric] {
    match case {
        Case::Queued | Case::Parked => &[
            RESIDENT_EACH,
            RESIDENT,
            ALLOCATIONS,
            ALLOCATED,
            SUBMIT,
            WALL,
            CPU,
            OTHERS,
        ],
        // Of a peak there is no telling how many were there.
        Case::Sleeping => &[PEAK, ALLOCATIONS, ALLOCATED, SUBMIT, WALL, CPU, OTHERS],
    }
}

/// A line for each run, as it ends.
pub fn print_run(round: usize, contender: Contender, sample: &Sample) {
    println!(
        "round {}: {contender}: {:.0} MB, {:.2} s to submit, {:.2} s in all, {:.2} s of CPU time",
        round + 1,
        sample.resident / 1e6,
        sample.submit,
        sample.wall,
        sample.cpu,
    );
    if let Some(cores) = sample.others.filter(|cores| *cores > 0.1) {
        println!("    others had {cores:.1} of the cores meanwhile");
    }
}

pub fn print(plan: &Plan, skipped: &[(Contender, String)], found: &Found) {
    let asked = |case: &Case| plan.contenders.iter().any(|c| c.case() == *case);
    for case in Case::ALL.into_iter().filter(asked) {
        let title = match case {
            Case::Queued => "closures that are queued",
            Case::Parked => "futures that are parked",
            Case::Sleeping => "futures that sleep (memory: the peak)",
        };
        println!("\n{} {title}; medians (range) over the rounds", plan.count);
        println!(
            "{:28} {:>8} {:>8} {:>7} {:>9} {:>9} {:>24} {:>24}",
            "", "B each", "MB", "allocs", "B asked", "submit s", "wall s", "CPU s"
        );
        for &contender in plan.contenders.iter().filter(|c| c.case() == case) {
            if let Some((_, why)) = skipped.iter().find(|(c, _)| *c == contender) {
                println!("{:28} skipped: {why}", contender.who());
                continue;
            }
            print_row(contender, found);
        }
    }
}

fn print_row(contender: Contender, found: &Found) {
    let figure = |(key, _, figure): Metric, digits: usize, spread: bool| {
        let is_there = metrics(contender.case()).iter().any(|m| m.0 == key);
        let figures = found.figures(contender, figure).filter(|_| is_there);
        let Some(figures) = figures else {
            return "-".to_owned();
        };
        let at = |q| quantile(figures.iter().copied(), q);
        let (least, middle, most) = (at(0.0), at(0.5), at(1.0));
        if spread {
            format!("{middle:.digits$} ({least:.digits$} to {most:.digits$})")
        } else {
            format!("{middle:.digits$}")
        }
    };
    // The peak stands where the others have what is resident.
    let in_all = found.figures(contender, |s| Some(s.resident / 1e6));
    println!(
        "{:28} {:>8} {:>8} {:>7} {:>9} {:>9} {:>24} {:>24}",
        contender.who(),
        figure(RESIDENT_EACH, 0, false),
        in_all.map_or("-".to_owned(), |mb| format!("{:.0}", median(mb))),
        figure(ALLOCATIONS, 2, false),
        figure(ALLOCATED, 0, false),
        figure(SUBMIT, 2, false),
        figure(WALL, 2, true),
        figure(CPU, 2, true),
    );
}

pub fn print_ratios(lines: &[Line]) {
    println!("\nmedian (range) of the rounds' own");
    for Line { name, ratio, unit } in lines {
        let ratio = ratio.map_or("not run".to_owned(), |ratio| format!("{ratio} {unit}"));
        println!("{name:44} {ratio}");
    }
}

pub fn write(plan: &Plan, skipped: &[(Contender, String)], found: &Found, lines: &[Line]) {
    let mut report = Report::new("million");
    report.row("plan", "count", "jobs", plan.count as f64, 1);
    for threads in plan.threads {
        report.row("plan", "os_threads", "threads", threads as f64, 1);
    }
    for (contender, why) in skipped {
        let why = format!("skipped: {why}");
        report.row(&contender.to_string(), &why, "", f64::NAN, 0);
    }
    for &contender in &plan.contenders {
        for &(key, unit, figure) in metrics(contender.case()) {
            let Some(figures) = found.figures(contender, figure) else {
                continue;
            };
            let key = if contender.is_extrapolated() {
                format!("{key}_extrapolated")
            } else {
                key.to_owned()
            };
            let name = contender.to_string();
            for (round, figure) in figures.iter().enumerate() {
                let metric = format!("{key}, round {}", round + 1);
                report.row(&name, &metric, unit, *figure, 1);
            }
            let rounds = figures.len();
            report.row(&name, &key, unit, median(figures), rounds);
        }
    }
    for line in lines {
        // One that was not measured is `null`.
        let ratio = line.ratio.map_or(f64::NAN, |ratio| ratio.median);
        report.ratio(line.name, ratio);
    }
    report.write();
}
