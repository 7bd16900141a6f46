//! What the rounds showed, put together: latencies, which runtime held the connections, where the
//! time went.

use std::collections::BTreeMap;

use crate::contender::Contender;
use crate::extra::{Case, Sample};
use crate::gate::Busy;
use crate::lane::Lane;
use crate::round::{Request, Round};
use crate::stats::percentile;

#[derive(Default)]
pub struct Findings {
    pub rounds: Vec<Round>,
    pub extras: Vec<(Case, Contender, Sample)>,
}

/// Where a request's connection was held: opened by, registered with, driven by.
pub type Holders = (Lane, Lane, Lane);

impl Findings {
    pub fn rounds(&self, contender: Contender, busy: Busy) -> impl Iterator<Item = &Round> {
        self.rounds
            .iter()
            .filter(move |round| round.contender == contender && round.busy == busy)
    }

    pub fn requests(&self, contender: Contender, busy: Busy) -> Vec<&Request> {
        self.rounds(contender, busy)
            .flat_map(|round| &round.requests)
            .collect()
    }

    pub fn latencies(&self, contender: Contender, busy: Busy) -> Vec<f64> {
        self.requests(contender, busy)
            .iter()
            .map(|r| r.latency_ms())
            .collect()
    }

    /// The contender's stalled requests and all of them, in both variants or in one.
    pub fn stalled(&self, contender: Contender, busy: Option<Busy>) -> (usize, usize) {
        let rounds = self.rounds.iter().filter(|round| {
            round.contender == contender && busy.is_none_or(|busy| busy == round.busy)
        });
        rounds.fold((0, 0), |(stalled, all), round| {
            (stalled + round.stalled(), all + round.requests.len())
        })
    }

    pub fn extra(&self, case: Case, contender: Contender) -> Vec<&Sample> {
        let of_this = |entry: &&(Case, Contender, Sample)| entry.0 == case && entry.1 == contender;
        self.extras
            .iter()
            .filter(of_this)
            .map(|entry| &entry.2)
            .collect()
    }

    /// p99 of (f) by p99 of (a), over all rounds.
    pub fn p99_ratio(&self, busy: Busy) -> f64 {
        let p99 = |contender| percentile(&self.latencies(contender, busy), 99.0);
        p99(Contender::Twolane) / p99(Contender::Alone)
    }

    /// The same ratio for each of `slices` equal slices of the rounds, in the order they were run.
    pub fn p99_ratio_slices(&self, busy: Busy, slices: usize) -> Vec<f64> {
        let p99s = |contender| -> Vec<f64> {
            let rounds: Vec<_> = self.rounds(contender, busy).collect();
            let size = (rounds.len() / slices).max(1);
            let of_slice = |slice: &[&Round]| {
                let requests = slice.iter().flat_map(|round| &round.requests);
                percentile(&requests.map(Request::latency_ms).collect::<Vec<_>>(), 99.0)
            };
            rounds
                .chunks_exact(size)
                .take(slices)
                .map(of_slice)
                .collect()
        };
        let (twolane, alone) = (p99s(Contender::Twolane), p99s(Contender::Alone));
        twolane.iter().zip(&alone).map(|(f, a)| f / a).collect()
    }
}

/// Stalled and others, by the runtime that held the connection.
pub fn by_holders(requests: &[&Request]) -> BTreeMap<Holders, (usize, usize)> {
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
pub fn rule(requests: &[&Request]) -> String {
    let all = requests.len();
    let stalled = requests.iter().filter(|r| r.stalled()).count();
    // For each tie: the requests that went over such a connection, and the stalled ones of them.
    let counts = TIES.map(|(tie, holds)| {
        let tied = requests.iter().filter(|r| holds(r));
        (
            tie,
            tied.clone().count(),
            tied.filter(|r| r.stalled()).count(),
        )
    });
    if stalled == 0 {
        let seen = counts.iter().filter(|(_, tied, _)| *tied > 0);
        let seen: Vec<_> = seen
            .map(|(tie, n, _)| format!("{n} on one that {tie}"))
            .collect();
        return if seen.is_empty() {
            format!("none of {all} stalled; none went over a connection of the cpu side")
        } else {
            format!(
                "none of {all} stalled, though there were {}",
                seen.join(", ")
            )
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
    let tie = shared
        .map(|(tie, ..)| *tie)
        .collect::<Vec<_>>()
        .join(" and ");
    if fewest == stalled {
        format!(
            "a request stalled exactly when its connection {tie}: all {stalled} such, none of the \
             {} others",
            all - stalled
        )
    } else {
        format!(
            "a request stalled only when its connection {tie}: {stalled} of the {fewest} such, \
             none of the {} others",
            all - fewest
        )
    }
}

/// Mean milliseconds in each segment.
pub fn mean_segments(requests: &[&Request]) -> [f64; 4] {
    let mut sums = [0.0; 4];
    for request in requests {
        for (sum, segment) in sums.iter_mut().zip(request.segments_ms()) {
            *sum += segment;
        }
    }
    sums.map(|sum| sum / requests.len() as f64)
}
