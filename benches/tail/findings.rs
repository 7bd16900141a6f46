//! What was measured: each contender's slices, by round.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::client::Latencies;
use crate::support::Ratio;

/// What every slice has, whatever else was measured in it.
pub trait Slice {
    fn latencies(&self) -> &Latencies;
}

/// From the send, or from when it was due: in the first a standstill counts as
/// one late request, in the second as all that were due in it.
pub type Counted = fn(&Latencies) -> &Histogram<u64>;

pub const FROM_SEND: Counted = |latencies| &latencies.from_send;
pub const FROM_INTENDED: Counted = |latencies| &latencies.from_intended;

/// NaN if there are none.
pub fn nanos(latencies: &Histogram<u64>, q: f64) -> f64 {
    match latencies.len() {
        0 => f64::NAN,
        _ => latencies.value_at_quantile(q) as f64,
    }
}

pub struct Findings<C, S> {
    contenders: Vec<C>,
    slices: BTreeMap<C, Vec<S>>,
    skipped: BTreeMap<C, String>,
}

impl<C: Copy + Ord, S: Slice> Findings<C, S> {
    pub fn new(contenders: &[C]) -> Self {
        Self {
            contenders: contenders.to_vec(),
            slices: BTreeMap::new(),
            skipped: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, contender: C, slice: S) {
        self.slices.entry(contender).or_default().push(slice);
    }

    pub fn skip(&mut self, contender: C, reason: String) {
        self.skipped.insert(contender, reason);
    }

    pub fn contenders(&self) -> &[C] {
        &self.contenders
    }

    /// Why there is nothing of this one.
    pub fn skipped(&self, contender: C) -> Option<&str> {
        self.skipped.get(&contender).map(String::as_str)
    }

    /// None, if it was not run, or not each time: the rounds that it has would
    /// be compared with the others' other rounds.
    pub fn slices(&self, contender: C) -> &[S] {
        match self.skipped(contender) {
            Some(_) => &[],
            None => self.slices.get(&contender).map_or(&[], Vec::as_slice),
        }
    }

    /// All slices in one.
    pub fn pooled(&self, contender: C) -> Latencies {
        let mut pooled = Latencies::none();
        for slice in self.slices(contender) {
            pooled.add(slice.latencies());
        }
        pooled
    }

    /// Over the slices, which are equally long; NaN if there are none.
    pub fn mean(&self, contender: C, of: impl Fn(&S) -> f64) -> f64 {
        let slices = self.slices(contender);
        slices.iter().map(of).sum::<f64>() / slices.len() as f64
    }

    /// Each slice is compared with the other's of the same round. NaN if one
    /// of the two is not there.
    pub fn ratio(&self, of: impl Fn(&S) -> f64, over: C, under: C) -> Ratio {
        Ratio::of_rounds(
            self.slices(over).iter().map(&of),
            self.slices(under).iter().map(&of),
        )
    }

    /// The same of a quantile of the latencies.
    pub fn latency_ratio(&self, counted: Counted, q: f64, over: C, under: C) -> Ratio {
        let of = |slice: &S| nanos(counted(slice.latencies()), q);
        self.ratio(of, over, under)
    }

    /// The same with all slices in one.
    pub fn pooled_latency_ratio(&self, counted: Counted, q: f64, over: C, under: C) -> f64 {
        let pooled = |contender| nanos(counted(&self.pooled(contender)), q);
        pooled(over) / pooled(under)
    }
}

/// Those asked for: by their whole name, or else by how it begins. All, if
/// nothing was asked for.
pub fn chosen<C: Copy>(all: &[C], name: fn(C) -> &'static str, asked: &[String]) -> Vec<C> {
    let is_asked = |contender: C| {
        asked.iter().any(|asked| {
            if all.iter().any(|any| name(*any) == asked) {
                name(contender) == asked
            } else {
                name(contender).starts_with(asked.as_str())
            }
        })
    };
    let chosen: Vec<C> = all
        .iter()
        .copied()
        .filter(|contender| asked.is_empty() || is_asked(*contender))
        .collect();
    if chosen.is_empty() {
        eprintln!("no contender is called {asked:?}");
        std::process::exit(2);
    }
    chosen
}
