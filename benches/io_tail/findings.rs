//! What was measured: each contender's slices, by round.

use std::collections::BTreeMap;

use crate::contender::Contender;
use crate::slice::Slice;
use crate::tail::client::Latencies;

pub struct Findings {
    contenders: Vec<Contender>,
    slices: BTreeMap<Contender, Vec<Slice>>,
    skipped: BTreeMap<Contender, String>,
}

impl Findings {
    pub fn new(contenders: &[Contender]) -> Self {
        Self {
            contenders: contenders.to_vec(),
            slices: BTreeMap::new(),
            skipped: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, contender: Contender, slice: Slice) {
        self.slices.entry(contender).or_default().push(slice);
    }

    pub fn skip(&mut self, contender: Contender, reason: String) {
        // Half of its rounds would be compared with others' other rounds.
        self.slices.remove(&contender);
        self.skipped.insert(contender, reason);
    }

    pub fn contenders(&self) -> &[Contender] {
        &self.contenders
    }

    /// Why there is nothing of this one.
    pub fn skipped(&self, contender: Contender) -> Option<&str> {
        self.skipped.get(&contender).map(String::as_str)
    }

    /// None, if it was not run.
    pub fn slices(&self, contender: Contender) -> &[Slice] {
        match self.skipped(contender) {
            Some(_) => &[],
            None => self.slices.get(&contender).map_or(&[], Vec::as_slice),
        }
    }

    /// All slices in one.
    pub fn pooled(&self, contender: Contender) -> Latencies {
        let mut pooled = Latencies::none();
        for slice in self.slices(contender) {
            pooled.add(&slice.latencies);
        }
        pooled
    }
}
