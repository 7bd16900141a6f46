//! Slices put together: what each contender's flushes and compactions took.

use super::contender::Contender;
use super::slice::{Load, Operation, Slice};

#[derive(Default)]
pub struct Findings {
    slices: Vec<(Contender, Load, Slice)>,
}

impl Findings {
    pub fn add(&mut self, contender: Contender, load: Load, slice: Slice) {
        self.slices.push((contender, load, slice));
    }

    pub fn has(&self, contender: Contender, load: Load) -> bool {
        self.slices(contender, load).next().is_some()
    }

    /// In the order of the rounds.
    pub fn slices(&self, contender: Contender, load: Load) -> impl Iterator<Item = &Slice> {
        let those = move |(c, l, _): &&(Contender, Load, Slice)| (*c, *l) == (contender, load);
        self.slices.iter().filter(those).map(|(_, _, slice)| slice)
    }

    /// The quantile of each round's flushes, in ms.
    pub fn flush_ms(&self, contender: Contender, load: Load, q: f64) -> Vec<f64> {
        self.slices(contender, load)
            .map(|slice| quantile(flushes_ms(slice), q))
            .collect()
    }

    /// The quantile of all rounds' flushes together, in ms.
    pub fn all_flush_ms(&self, contender: Contender, load: Load, q: f64) -> f64 {
        quantile(self.slices(contender, load).flat_map(flushes_ms), q)
    }

    pub fn flushes(&self, contender: Contender, load: Load) -> usize {
        let flushes = |slice: &Slice| slice.flushes.len();
        self.slices(contender, load).map(flushes).sum()
    }

    /// Compactions a second in each round.
    pub fn compactions_per_s(&self, contender: Contender) -> Vec<f64> {
        self.slices(contender, Load::Busy)
            .map(Slice::compactions_per_s)
            .collect()
    }

    pub fn rows_verified(&self) -> u64 {
        self.slices
            .iter()
            .map(|(_, _, slice)| slice.rows_verified)
            .sum()
    }

    pub fn print(&self) {
        println!(
            "\n  {:<42} {:^26}   {:^26}   {:>13}",
            "flushes, ms", "alone", "beside 4 compactions", "compactions/s"
        );
        let heads = format!("{:>8} {:>8} {:>8}", "p50", "p99", "max");
        println!("  {:<42} {heads}   {heads}", "");
        for contender in Contender::ALL {
            if !self.has(contender, Load::Busy) {
                continue;
            }
            let times = |load| {
                let [p50, p99, max] =
                    [0.5, 0.99, 1.0].map(|q| self.all_flush_ms(contender, load, q));
                if self.has(contender, load) {
                    format!("{p50:>8.1} {p99:>8.1} {max:>8.1}")
                } else {
                    format!("{:>8} {:>8} {:>8}", ".", ".", ".")
                }
            };
            println!(
                "  {:<42} {}   {}   {:>13.1}",
                contender.title(),
                times(Load::Alone),
                times(Load::Busy),
                quantile(self.compactions_per_s(contender), 0.5),
            );
        }
    }
}

fn flushes_ms(slice: &Slice) -> impl Iterator<Item = f64> {
    slice.flushes.iter().map(Operation::took_ms)
}

/// The value that a fraction `q` of the others do not exceed.
pub fn quantile(values: impl IntoIterator<Item = f64>, q: f64) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let rank = (q * values.len() as f64).ceil() as usize;
    values.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}
