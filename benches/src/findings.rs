//! What the rounds measure, by contender and metric.

use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::Histogram;
use serde::Serialize;

/// What one turn of a contender measures.
#[derive(Default)]
pub struct Sample {
    figures: Vec<(String, &'static str, f64)>,
    latencies: Vec<(&'static str, Histogram<u64>)>,
}

impl Sample {
    /// One of one figure.
    pub fn of(metric: impl Into<String>, unit: &'static str, value: f64) -> Self {
        let mut sample = Self::default();
        sample.put(metric, unit, value);
        sample
    }

    pub fn put(&mut self, metric: impl Into<String>, unit: &'static str, value: f64) {
        self.figures.push((metric.into(), unit, value));
    }

    pub fn figure(&self, metric: &str) -> Option<f64> {
        let mut figures = self.figures.iter();
        figures.find_map(|(name, _, value)| (name == metric).then_some(*value))
    }

    /// A histogram of nanoseconds. It gives the figures `NAME_p50`, `_p99`,
    /// `_p999` and `_max`, in ms.
    pub fn put_latencies(&mut self, name: &'static str, nanos: Histogram<u64>) {
        for (suffix, q) in QUANTILES {
            self.put(format!("{name}_{suffix}"), "ms", ms_at(&nanos, q));
        }
        self.latencies.push((name, nanos));
    }
}

/// What the contest adds to each sample: how much of the machine other programs had.
pub(crate) const OTHERS: &str = "others";

const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)];

/// NaN if it is empty.
fn ms_at(nanos: &Histogram<u64>, q: f64) -> f64 {
    match nanos.len() {
        0 => f64::NAN,
        _ => nanos.value_at_quantile(q) as f64 / 1e6,
    }
}

/// From 100 ns to ten minutes, within a thousandth.
pub fn empty_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(100, 600_000_000_000, 3).unwrap()
}

type Key = (String, String);

/// A contender that a turn has ended for good.
struct Out {
    why: String,
    is_failure: bool,
}

/// The samples of all rounds. Metrics of a contender that is out are not there: other contenders'
/// rounds would be compared with rounds that it does not have.
#[derive(Default)]
pub struct Findings {
    contenders: Vec<String>,
    out: BTreeMap<String, Out>,
    rounds: BTreeMap<Key, Vec<f64>>,
    units: BTreeMap<String, &'static str>,
    pooled: BTreeMap<Key, Histogram<u64>>,
}

impl Findings {
    pub(crate) fn new(contenders: Vec<String>) -> Self {
        Self {
            contenders,
            ..Self::default()
        }
    }

    pub(crate) fn add(&mut self, contender: &str, sample: Sample) {
        for (metric, unit, value) in sample.figures {
            self.units.insert(metric.clone(), unit);
            let key = (contender.to_owned(), metric);
            self.rounds.entry(key).or_default().push(value);
        }
        for (name, latencies) in sample.latencies {
            let key = (contender.to_owned(), name.to_owned());
            let pooled = self.pooled.entry(key).or_insert_with(empty_histogram);
            pooled.add(latencies).unwrap();
        }
    }

    pub(crate) fn take_out(&mut self, contender: &str, why: String, is_failure: bool) {
        self.rounds.retain(|(of, _), _| of != contender);
        self.pooled.retain(|(of, _), _| of != contender);
        let out = Out { why, is_failure };
        self.out.insert(contender.to_owned(), out);
    }

    /// Those that the command line asks for, in the order of the tables.
    pub fn contenders(&self) -> impl Iterator<Item = &str> {
        self.contenders.iter().map(String::as_str)
    }

    /// Whether it has no figures, because a turn had an error.
    pub fn is_out(&self, contender: &str) -> bool {
        self.out.contains_key(contender)
    }

    pub(crate) fn has_run(&self, contender: &str) -> bool {
        self.contenders().any(|one| one == contender) && !self.is_out(contender)
    }

    /// Whether some contender has it.
    pub(crate) fn has(&self, metric: &str) -> bool {
        self.units.contains_key(metric)
    }

    pub(crate) fn why_out(&self, contender: &str) -> Option<String> {
        let out = self.out.get(contender)?;
        let what = if out.is_failure { "failed" } else { "not run" };
        Some(format!("{what}: {}", out.why))
    }

    /// Those that cannot run here, with the reason.
    pub(crate) fn not_run(&self) -> impl Iterator<Item = String> {
        let not_run = self.out.iter().filter(|(_, out)| !out.is_failure);
        not_run.map(|(contender, out)| format!("{contender}: {}", out.why))
    }

    /// What has failed: contenders with an error, and those whose turns measure nothing.
    pub(crate) fn failures(&self) -> impl Iterator<Item = String> {
        self.contenders.iter().filter_map(|contender| {
            let why = match self.out.get(contender) {
                Some(out) => out.is_failure.then(|| out.why.clone()),
                None => self
                    .is_empty(contender)
                    .then(|| "it measures nothing".into()),
            };
            why.map(|why| format!("{contender}: {why}"))
        })
    }

    fn is_empty(&self, contender: &str) -> bool {
        let has_value = |((of, metric), rounds): (&Key, &Vec<f64>)| {
            of == contender && metric != OTHERS && rounds.iter().any(|value| !value.is_nan())
        };
        !self.rounds.iter().any(has_value)
    }

    /// One value a round; none if it was not measured.
    pub fn rounds(&self, contender: &str, metric: &str) -> &[f64] {
        let key = (contender.to_owned(), metric.to_owned());
        self.rounds.get(&key).map_or(&[], Vec::as_slice)
    }

    pub fn median(&self, contender: &str, metric: &str) -> f64 {
        median(self.rounds(contender, metric).iter().copied())
    }

    /// Of all rounds; NaN if it was not measured.
    pub fn sum(&self, contender: &str, metric: &str) -> f64 {
        match self.rounds(contender, metric) {
            [] => f64::NAN,
            rounds => rounds.iter().sum(),
        }
    }

    /// All rounds' latencies in one histogram.
    pub fn pooled(&self, contender: &str, latencies: &str) -> Option<&Histogram<u64>> {
        self.pooled
            .get(&(contender.to_owned(), latencies.to_owned()))
    }

    /// A quantile of all rounds' latencies, in ms.
    pub fn pooled_ms(&self, contender: &str, latencies: &str, q: f64) -> f64 {
        let pooled = self.pooled(contender, latencies);
        pooled.map_or(f64::NAN, |nanos| ms_at(nanos, q))
    }

    /// The round's value of one contender over the same round's of another.
    pub fn ratio(&self, metric: &str, over: &str, under: &str) -> Ratio {
        Ratio::of_rounds(self.rounds(over, metric), self.rounds(under, metric))
    }

    /// The same over that of `peers` whose median of all rounds is the least.
    pub fn over_least(&self, metric: &str, over: &str, peers: &[impl AsRef<str>]) -> Ratio {
        self.over_best(metric, over, peers, |median| -median)
    }

    /// The same over that with the greatest.
    pub fn over_most(&self, metric: &str, over: &str, peers: &[impl AsRef<str>]) -> Ratio {
        self.over_best(metric, over, peers, |median| median)
    }

    fn over_best(
        &self,
        metric: &str,
        over: &str,
        peers: &[impl AsRef<str>],
        merit: fn(f64) -> f64,
    ) -> Ratio {
        let merit = |peer: &str| merit(self.median(peer, metric));
        let peers = peers.iter().map(AsRef::as_ref);
        let measured = peers.filter(|peer| !merit(peer).is_nan());
        let best = measured.max_by(|a, b| merit(a).total_cmp(&merit(b)));
        best.map_or(Ratio::NONE, |best| self.ratio(metric, over, best))
    }

    /// The values of the rounds themselves, as a ratio over 1.
    pub fn value(&self, metric: &str, contender: &str) -> Ratio {
        let values = self.rounds(contender, metric);
        Ratio::of_rounds(values, &vec![1.0; values.len()])
    }

    /// All of it, for the report.
    pub(crate) fn rows(&self) -> Vec<Row<'_>> {
        let out = self.out.keys().map(|contender| Row {
            contender,
            metric: self.why_out(contender).unwrap_or_default(),
            unit: "",
            value: f64::NAN,
            least: f64::NAN,
            most: f64::NAN,
            n: 0,
        });
        let figures = self.rounds.iter().map(|((contender, metric), rounds)| {
            let [least, most] = [0.0, 1.0].map(|q| quantile(rounds.iter().copied(), q));
            Row {
                contender,
                metric: metric.clone(),
                unit: self.units[metric],
                value: median(rounds.iter().copied()),
                least,
                most,
                n: rounds.len(),
            }
        });
        let pooled = self.pooled.iter().flat_map(|((contender, name), nanos)| {
            QUANTILES.map(|(suffix, q)| Row {
                contender,
                metric: format!("{name}_{suffix}_of_all_rounds"),
                unit: "ms",
                value: ms_at(nanos, q),
                least: f64::NAN,
                most: f64::NAN,
                n: nanos.len() as usize,
            })
        });
        out.chain(figures).chain(pooled).collect()
    }
}

/// A figure in the report. What was not measured is NaN, and so `null`.
#[derive(Serialize)]
pub(crate) struct Row<'a> {
    contender: &'a str,
    metric: String,
    unit: &'static str,
    value: f64,
    /// Of the rounds. What all rounds share has none.
    least: f64,
    most: f64,
    /// How many rounds, or samples of a histogram, stand behind the value.
    n: usize,
}

/// A ratio of two contenders that run in the same rounds: the median of the
/// rounds' own ratios, and the range of them.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ratio {
    pub median: f64,
    least: f64,
    most: f64,
    /// How many rounds it is of. 0: of all rounds together.
    rounds: usize,
}

impl Ratio {
    /// Not measured.
    pub const NONE: Self = Self::once(f64::NAN);

    /// One of all rounds together.
    pub const fn once(value: f64) -> Self {
        Self {
            median: value,
            least: value,
            most: value,
            rounds: 0,
        }
    }

    pub fn of_rounds(over: &[f64], under: &[f64]) -> Self {
        let ratios = over.iter().zip(under).map(|(over, under)| over / under);
        let [least, most] = [0.0, 1.0].map(|q| quantile(ratios.clone(), q));
        Self {
            median: median(ratios.clone()),
            least,
            most,
            rounds: ratios.len(),
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (self.least, self.most);
        match self.rounds {
            0 => write!(f, "{:.3} (all rounds in one)", self.median),
            1 => write!(f, "{:.3} (one round)", self.median),
            // Two values have no median.
            2 => write!(f, "{least:.3} and {most:.3} (two rounds)"),
            _ => write!(f, "{:.3} ({least:.3} to {most:.3})", self.median),
        }
    }
}

/// The value that a fraction `q` of the others do not exceed.
pub fn quantile(values: impl IntoIterator<Item = f64>, q: f64) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n => values[((n - 1) as f64 * q).round() as usize],
    }
}

/// The mean of the two in the middle, if there are two.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n => (values[(n - 1) / 2] + values[n / 2]) / 2.0,
    }
}
