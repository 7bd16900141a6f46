//! Why requests stalled: which lane held their connections, and where the time went.

use std::collections::BTreeMap;

use twolane_benches::report::{digits, print_table};

use crate::contender::Contender;
use crate::gate::Busy;
use crate::lane::Lane;
use crate::round::{Request, Round, SEGMENTS};

/// The requests of one contender in one variant.
pub fn requests(rounds: &[Round], contender: Contender, busy: Busy) -> Vec<&Request> {
    let its = |round: &&Round| round.contender == contender && round.busy == busy;
    let rounds = rounds.iter().filter(its);
    rounds.flat_map(|round| &round.requests).collect()
}

pub fn print(rounds: &[Round]) {
    let each = || {
        Contender::ALL
            .into_iter()
            .flat_map(|c| Busy::ALL.map(|busy| (c, busy)))
    };
    let mut held = Vec::new();
    let mut times = Vec::new();
    for (contender, busy) in each() {
        let requests = requests(rounds, contender, busy);
        let name = format!("{}, {}", contender.title(), busy.key());
        for ((opened, reactor, driven), (stalled, others)) in by_holders(&requests) {
            let lanes = [opened, reactor, driven].map(|lane| lane.to_string());
            let counts = [stalled, others].map(|count| count.to_string());
            held.push([&[name.clone()][..], &lanes, &counts].concat());
        }
        let (stalled, others): (Vec<&Request>, Vec<_>) =
            requests.into_iter().partition(|request| request.stalled());
        for (kind, group) in [("stalled", stalled), ("others", others)] {
            if !group.is_empty() {
                let means = mean_segments(&group).map(digits);
                let head = [format!("{name}, {kind}"), group.len().to_string()];
                times.push([&head[..], &means].concat());
            }
        }
    }
    print_table(
        "Who held the connection that each request went over, as observed",
        &[
            "",
            "opened by",
            "reactor of",
            "driven by",
            "stalled",
            "others",
        ],
        &held,
    );
    println!();
    for (contender, busy) in each() {
        let requests = requests(rounds, contender, busy);
        if !requests.is_empty() {
            println!(
                "- {}, {}: {}.",
                contender.title(),
                busy.key(),
                rule(&requests)
            );
        }
    }
    let count = |odd: fn(&Request) -> bool| {
        let requests = rounds.iter().flat_map(|round| &round.requests);
        requests.filter(|request| odd(request)).count()
    };
    let unknown = count(|request| request.reactor_of == Lane::Unknown);
    if unknown > 0 {
        println!("- reactor unknown ({unknown}): not to be seen here, or in none that is ours");
    }
    let ambiguous = count(|request| request.ambiguous);
    if ambiguous > 0 {
        println!("- last wakes from two lanes ({ambiguous}): the very last one counts");
    }
    print_table(
        "Where the time went, mean ms a request",
        &[&["", "n"][..], &SEGMENTS].concat(),
        &times,
    );
}

/// Where a request's connection was held: opened by, registered with, driven by.
type Holders = (Lane, Lane, Lane);

/// Stalled and others, by the runtime that held the connection.
fn by_holders(requests: &[&Request]) -> BTreeMap<Holders, (usize, usize)> {
    let mut counts = BTreeMap::new();
    for request in requests {
        let holders = (request.opened_by, request.reactor_of, request.driven_by);
        let (stalled, others): &mut (usize, usize) = counts.entry(holders).or_default();
        *(if request.stalled() { stalled } else { others }) += 1;
    }
    counts
}

/// A way in which a connection can be the cpu side's.
type Tie = (&'static str, fn(&Request) -> bool);

const TIES: [Tie; 3] = [
    ("was opened by the cpu side", |r| r.opened_by == Lane::Cpu),
    ("sits in the cpu side's reactor", |r| {
        r.reactor_of == Lane::Cpu
    }),
    ("is driven by the cpu side", |r| r.driven_by == Lane::Cpu),
];

/// The rule that these requests followed, in words. From their counts alone.
fn rule(requests: &[&Request]) -> String {
    let all = requests.len();
    let stalled = requests.iter().filter(|r| r.stalled()).count();
    // For each tie: the requests that went over such a connection, and the stalled ones of them.
    let counts = TIES.map(|(tie, holds)| {
        let tied = requests.iter().filter(|r| holds(r));
        let tied_stalled = tied.clone().filter(|r| r.stalled());
        (tie, tied.count(), tied_stalled.count())
    });
    if stalled == 0 {
        let seen = counts.iter().filter(|(_, tied, _)| *tied > 0);
        let seen: Vec<_> = seen
            .map(|(tie, n, _)| format!("{n} on one that {tie}"))
            .collect();
        return match &seen[..] {
            [] => format!("none of {all} stalled; none went over a connection of the cpu side"),
            seen => format!(
                "none of {all} stalled, though there were {}",
                seen.join(", ")
            ),
        };
    }
    // The ties that all stalled requests share, and of those the ones that fewest others do.
    let shared = counts
        .iter()
        .filter(|(.., tied_stalled)| *tied_stalled == stalled);
    let Some(fewest) = shared.clone().map(|(_, tied, _)| *tied).min() else {
        let untied = |r: &&&Request| r.stalled() && !TIES.iter().any(|(_, holds)| holds(r));
        let untied = requests.iter().filter(untied).count();
        return format!(
            "{stalled} of {all} stalled; {untied} of them over a connection that was the io side's \
             in every way"
        );
    };
    let shared = shared.filter(|(_, tied, _)| *tied == fewest);
    let ties: Vec<_> = shared.map(|(tie, ..)| *tie).collect();
    let tie = ties.join(" and ");
    if fewest == stalled {
        let others = all - stalled;
        format!(
            "a request stalled exactly when its connection {tie}: all {stalled} such, none of the \
             {others} others"
        )
    } else {
        let others = all - fewest;
        format!(
            "a request stalled only when its connection {tie}: {stalled} of the {fewest} such, \
             none of the {others} others"
        )
    }
}

/// Mean milliseconds in each segment.
fn mean_segments(requests: &[&Request]) -> [f64; 4] {
    let mut sums = [0.0; 4];
    for request in requests {
        for (sum, segment) in sums.iter_mut().zip(request.segments_ms()) {
            *sum += segment;
        }
    }
    sums.map(|sum| sum / requests.len() as f64)
}
