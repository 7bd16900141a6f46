//! What was measured, by round.

use std::collections::BTreeMap;

use crate::lanes::{IoRuntime, Slice};
use crate::plan::Size;
use crate::support::{Ratio, median};
use crate::tail::client::Latencies;
use crate::tail::findings::{Counted, nanos};
use crate::ways::Way;

#[derive(Default)]
pub struct Found {
    slices: BTreeMap<(IoRuntime, Size, Way), Vec<Slice>>,
    idle: BTreeMap<IoRuntime, Vec<Latencies>>,
}

impl Found {
    pub fn add(&mut self, io: IoRuntime, size: Size, way: Way, slice: Slice) {
        self.slices.entry((io, size, way)).or_default().push(slice);
    }

    pub fn add_idle(&mut self, io: IoRuntime, latencies: Latencies) {
        self.idle.entry(io).or_default().push(latencies);
    }

    pub fn pieces_per_s(&self, io: IoRuntime, size: Size, way: Way) -> f64 {
        median(self.each(io, size, way, |slice| slice.pieces_per_s))
    }

    /// One way's pieces a second over another's.
    pub fn throughput(&self, io: IoRuntime, size: Size, over: Way, under: Way) -> Ratio {
        let of = |way| self.each(io, size, way, |slice| slice.pieces_per_s);
        Ratio::of_rounds(of(over), of(under))
    }

    /// One way's CPU time for a piece over another's.
    pub fn cpu(&self, io: IoRuntime, size: Size, over: Way, under: Way) -> Ratio {
        let of = |way| self.each(io, size, way, |slice| slice.cpu_s_per_piece);
        Ratio::of_rounds(of(over), of(under))
    }

    /// Of the other task, in microseconds: the median of the rounds' quantiles.
    pub fn latency(&self, io: IoRuntime, size: Size, way: Way, counted: Counted, q: f64) -> f64 {
        median(self.each(io, size, way, |slice| us(counted(&slice.latencies), q)))
    }

    /// Likewise, when there is no work.
    pub fn idle_latency(&self, io: IoRuntime, counted: Counted, q: f64) -> f64 {
        median(self.idle[&io].iter().map(|found| us(counted(found), q)))
    }

    pub fn latency_ratio(
        &self,
        (io, size): (IoRuntime, Size),
        (over, under): (Way, Way),
        counted: Counted,
        q: f64,
    ) -> Ratio {
        let of = |way| self.each(io, size, way, |slice| us(counted(&slice.latencies), q));
        Ratio::of_rounds(of(over), of(under))
    }

    /// Of all rounds in one.
    pub fn pooled(&self, io: IoRuntime, size: Size, way: Way) -> Latencies {
        let mut pooled = Latencies::none();
        for slice in &self.slices[&(io, size, way)] {
            pooled.add(&slice.latencies);
        }
        pooled
    }

    fn each<'a>(
        &'a self,
        io: IoRuntime,
        size: Size,
        way: Way,
        of: impl Fn(&Slice) -> f64 + 'a,
    ) -> impl Iterator<Item = f64> + 'a {
        self.slices[&(io, size, way)].iter().map(of)
    }
}

fn us(latencies: &hdrhistogram::Histogram<u64>, q: f64) -> f64 {
    nanos(latencies, q) / 1e3
}
