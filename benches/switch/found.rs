//! What all turns found.

use crate::case::{Case, Figures};
use crate::contender::Entry;

/// Each contender's in the order of the rounds.
#[derive(Default)]
pub struct Found(Vec<(Entry, Figures)>);

impl Found {
    pub fn add(&mut self, entry: Entry, figures: Figures) {
        self.0.push((entry, figures));
    }

    /// One figure of each round; `None` if it was not measured.
    pub fn rounds(&self, entry: Entry, case: Case) -> Option<Vec<f64>> {
        let its = self.0.iter().filter(|(of, _)| *of == entry);
        let figures: Vec<f64> = its.filter_map(|(_, f)| f.get(&case).copied()).collect();
        (!figures.is_empty()).then_some(figures)
    }
}
