//! What is printed.

use crate::contender::Contender;
use crate::extra::{self, Case};
use crate::findings::{Findings, by_holders, mean_segments, rule};
use crate::gate::Busy;
use crate::lane::Lane;
use crate::round::{Request, SEGMENTS};
use crate::stats::{max, percentile};

/// Slices of the rounds in which the headline ratio is computed too.
pub const SLICES: usize = 5;

/// Short names for [`SEGMENTS`].
const COLUMNS: [&str; 4] = ["unwritten", "server", "unread", "unpolled"];

pub fn print(findings: &Findings) {
    latencies(findings);
    holders(findings);
    segments(findings);
    headline(findings);
    extras(findings);
}

fn what(busy: Busy) -> &'static str {
    match busy {
        Busy::Sleep => "each CPU job sleeps for 200 ms on its thread, as published",
        Busy::Burn => "each CPU job computes for 200 ms",
    }
}

fn latencies(findings: &Findings) {
    for busy in Busy::ALL {
        println!("\nThe io side's requests, in ms; {}:\n", what(busy));
        println!(
            "  {:<30} {:>8} {:>8} {:>8} {:>8} {:>8}",
            "", "requests", "stalled", "p50", "p99", "max"
        );
        for contender in Contender::ALL {
            let samples = findings.latencies(contender, busy);
            let (stalled, _) = findings.stalled(contender, Some(busy));
            println!(
                "  {:<30} {:>8} {stalled:>8} {:>8.1} {:>8.1} {:>8.1}",
                contender.title(),
                samples.len(),
                percentile(&samples, 50.0),
                percentile(&samples, 99.0),
                max(&samples),
            );
        }
    }
}

fn holders(findings: &Findings) {
    println!("\nWho held the connection that each request went over, as observed:");
    println!(
        "\n  {:<30} {:<6} {:>9} {:>10} {:>9} {:>10} {:>9}",
        "", "", "opened by", "reactor of", "driven by", "stalled", "others"
    );
    for contender in Contender::ALL {
        for busy in Busy::ALL {
            let mut title = contender.title();
            for ((opened, reactor, driven), (stalled, others)) in
                by_holders(&findings.requests(contender, busy))
            {
                println!(
                    "  {title:<30} {:<6} {opened:>9} {reactor:>10} {driven:>9} {stalled:>10} {others:>9}",
                    busy.key(),
                );
                title = "";
            }
        }
    }
    println!();
    for contender in Contender::ALL {
        for busy in Busy::ALL {
            let requests = findings.requests(contender, busy);
            println!(
                "  {} {}: {}.",
                contender.title(),
                busy.key(),
                rule(&requests)
            );
        }
    }
    let count = |odd: fn(&Request) -> bool| {
        let requests = findings.rounds.iter().flat_map(|round| &round.requests);
        requests.filter(|request| odd(request)).count()
    };
    let unknown = count(|request| request.reactor_of == Lane::Unknown);
    if unknown > 0 {
        println!(
            "  Reactor unknown ({unknown}): not to be seen on this platform, or in none that is ours."
        );
    }
    let ambiguous = count(|request| request.ambiguous);
    if ambiguous > 0 {
        println!("  Last wakes from two lanes ({ambiguous}): the very last one counts.");
    }
}

fn segments(findings: &Findings) {
    println!("\nWhere the time went, mean ms per request:\n");
    for (name, segment) in COLUMNS.iter().zip(SEGMENTS) {
        println!("  {name}: {segment}");
    }
    print!("\n  {:<30} {:<14} {:>6}", "", "", "n");
    COLUMNS.iter().for_each(|name| print!(" {name:>9}"));
    println!();
    for contender in Contender::ALL {
        for busy in Busy::ALL {
            let requests = findings.requests(contender, busy);
            let (stalled, others): (Vec<&Request>, Vec<&Request>) =
                requests.into_iter().partition(|r| r.stalled());
            for (name, group) in [("stalled", stalled), ("others", others)] {
                if group.is_empty() {
                    continue;
                }
                let kind = format!("{}, {name}", busy.key());
                print!("  {:<30} {kind:<14} {:>6}", contender.title(), group.len());
                mean_segments(&group)
                    .iter()
                    .for_each(|mean| print!(" {mean:>9.2}"));
                println!();
            }
        }
    }
}

fn headline(findings: &Findings) {
    println!();
    for busy in Busy::ALL {
        let slices = findings.p99_ratio_slices(busy, SLICES);
        let min = slices.iter().copied().fold(f64::NAN, f64::min);
        println!(
            "p99 of (f) by p99 of (a), {}: {:.3}; in {} equal slices of the rounds {min:.3} to {:.3}",
            busy.key(),
            findings.p99_ratio(busy),
            slices.len(),
            max(&slices),
        );
    }
}

fn extras(findings: &Findings) {
    for case in Case::ALL {
        println!("\n{}:\n", case.title());
        println!(
            "  {:<30} {:>24} {:>8} {:>8}",
            "",
            case.counts(),
            "p50 ms",
            "max ms"
        );
        for contender in extra::CONTENDERS {
            let samples = findings.extra(case, contender);
            let took: Vec<f64> = samples.iter().map(|s| s.took_ms).collect();
            let bad = samples.iter().filter(|s| s.bad).count();
            println!(
                "  {:<30} {:>24} {:>8.1} {:>8.1}",
                contender.title(),
                format!("{bad} of {}", samples.len()),
                percentile(&took, 50.0),
                max(&took),
            );
        }
    }
}
