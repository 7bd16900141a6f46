//! What was found, and the ratios of it.

use std::collections::BTreeMap;

use crate::measure::Found;
use crate::support::{Ratio, median};

/// By contender and metric: one value a round.
#[derive(Default)]
pub struct Figures(BTreeMap<(String, &'static str), Vec<f64>>);

impl Figures {
    pub fn add(&mut self, contender: &str, found: Found) {
        for (metric, value) in found {
            let key = (contender.to_owned(), metric);
            self.0.entry(key).or_default().push(value);
        }
    }

    pub fn rounds(&self, contender: &str, metric: &'static str) -> Option<&[f64]> {
        let rounds = self.0.get(&(contender.to_owned(), metric))?;
        Some(rounds)
    }

    pub fn median(&self, contender: &str, metric: &'static str) -> Option<f64> {
        Some(median(self.rounds(contender, metric)?.iter().copied()))
    }

    /// All of them: contender, metric, rounds.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &'static str, &[f64])> {
        self.0
            .iter()
            .map(|((contender, metric), rounds)| (contender.as_str(), *metric, rounds.as_slice()))
    }

    /// `ours` over the one of `peers` that has the best median of all rounds.
    /// None if one of them was not measured.
    pub fn over_best(&self, ours: &str, peers: &[&str], metric: &'static str) -> Option<Ratio> {
        let ours = self.rounds(ours, metric)?;
        let medians = peers.iter().filter_map(|peer| {
            let rounds = self.rounds(peer, metric)?;
            Some((median(rounds.iter().copied()), rounds))
        });
        let (_, best) = medians.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
        Some(Ratio::of_rounds(ours.iter().copied(), best.iter().copied()))
    }
}
