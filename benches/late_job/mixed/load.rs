//! What arrives and when, and the figures of a run.

use std::fmt::Write;
use std::time::Duration;

use twolane_benches::findings::quantile;
use twolane_benches::tail::work::Work;
use twolane_benches::{Sample, cores};

/// The part of the cores' time that arrives as work.
const LOAD: f64 = 0.9;
/// What is short, and labelled.
const SHORT_US: f64 = 1_000.0;
pub const SHORT: &str = "up to 1 ms";
pub const LONG: &str = "more than 1 ms";
pub const LONG_WORK: &str = "long_work";

// A report keeps the names of its columns for good.
pub fn mean(class: &str) -> &'static str {
    format!("mean of {class}").leak()
}

pub fn p99(class: &str) -> &'static str {
    format!("p99 of {class}").leak()
}

/// A kind of load: its name, the lengths of its jobs, and whether each has a call site of its own.
#[derive(Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    lengths: fn() -> Vec<Length>,
    has_sites: bool,
}

pub const KINDS: [Kind; 2] = [
    Kind {
        name: "ten sites",
        lengths: ten_lengths,
        has_sites: true,
    },
    Kind {
        name: "one site",
        lengths: || {
            vec![
                Length::of(20.0, "20 us", 99.0),
                Length::of(2e4, "20 ms", 1.0),
            ]
        },
        has_sites: false,
    },
];

impl Kind {
    /// In their order, each once.
    pub fn classes(self) -> Vec<&'static str> {
        let lengths = (self.lengths)().into_iter();
        let mut classes: Vec<_> = lengths.map(|length| length.class).collect();
        classes.dedup();
        classes
    }
}

/// Jobs of one length.
struct Length {
    us: f64,
    class: &'static str,
    /// How many of them come, in proportion.
    weight: f64,
}

impl Length {
    fn of(us: f64, class: &'static str, weight: f64) -> Self {
        Self { us, class, weight }
    }
}

pub struct Arrival {
    /// After the start.
    pub at: Duration,
    pub length: usize,
}

pub struct Load {
    kind: Kind,
    lengths: Vec<Length>,
    pub arrivals: Vec<Arrival>,
}

impl Load {
    /// For each round another one, the same for all contenders.
    pub fn of_rounds(kind: Kind, time: Duration) -> impl Iterator<Item = Self> {
        (31..).map(move |seed| {
            let lengths = (kind.lengths)();
            let arrivals = arrivals(&lengths, time, seed);
            Self {
                kind,
                lengths,
                arrivals,
            }
        })
    }

    /// For each length, the name of its call site.
    pub fn sites(&self) -> Vec<String> {
        let name = |length: &Length| match self.kind.has_sites {
            true => format!("mixed_load: {} us", length.us),
            false => "mixed_load: all".to_owned(),
        };
        self.lengths.iter().map(name).collect()
    }

    pub fn is_short(&self, length: usize) -> bool {
        self.lengths[length].us <= SHORT_US
    }

    /// For each length, the work. `ms`: what takes a millisecond.
    pub fn works(&self, ms: Work) -> Vec<Work> {
        let work = |length: &Length| ms.times(length.us / 1e3);
        self.lengths.iter().map(work).collect()
    }

    /// A line for each job: when it arrives, and its work, in nanoseconds.
    pub fn as_text(&self) -> String {
        let mut text = String::new();
        for arrival in &self.arrivals {
            let work = self.lengths[arrival.length].us * 1e3;
            writeln!(text, "{} {work:.0}", arrival.at.as_nanos()).unwrap();
        }
        text
    }

    /// `latencies`: of each arrival, in nanoseconds.
    pub fn sample(&self, latencies: &[u64]) -> Sample {
        assert_eq!(latencies.len(), self.arrivals.len(), "a job was lost");
        let mut sample = Sample::default();
        let mut put = |class: &str, is_in: &dyn Fn(&Length) -> bool| {
            let pairs = self.arrivals.iter().zip(latencies);
            let slowdowns = pairs.filter_map(|(arrival, latency)| {
                let length = &self.lengths[arrival.length];
                is_in(length).then_some(*latency as f64 / (length.us * 1e3))
            });
            let slowdowns: Vec<f64> = slowdowns.collect();
            let sum: f64 = slowdowns.iter().sum();
            sample.put(mean(class), "times", sum / slowdowns.len() as f64);
            sample.put(p99(class), "times", quantile(slowdowns, 0.99));
        };
        for class in self.kind.classes() {
            put(class, &|length| length.class == class);
        }
        put(SHORT, &|length| length.us <= SHORT_US);
        put(LONG, &|length| length.us > SHORT_US);
        let (mut work, mut last) = (0.0, 0.0_f64);
        for (arrival, latency) in self.arrivals.iter().zip(latencies) {
            let length = &self.lengths[arrival.length];
            if length.us > SHORT_US {
                work += length.us / 1e6;
                last = last.max(arrival.at.as_secs_f64() + *latency as f64 / 1e9);
            }
        }
        sample.put(LONG_WORK, "cores", work / last);
        sample
    }
}

/// 10 us to 100 ms.
fn ten_lengths() -> Vec<Length> {
    let length = |n: i32| {
        let us = 10.0 * 10_f64.powf(f64::from(n) * 4.0 / 9.0);
        let class = match n {
            0..2 => "10 and 28 us",
            2..4 => "77 and 220 us",
            4 => "0.6 ms",
            5..8 => "1.7 to 13 ms",
            _ => "36 and 100 ms",
        };
        Length::of(us.round(), class, us.powf(-0.5))
    };
    (0..10).map(length).collect()
}

/// Random, and stretched so that the load is what it should be.
fn arrivals(lengths: &[Length], time: Duration, seed: u64) -> Vec<Arrival> {
    let weights: f64 = lengths.iter().map(|length| length.weight).sum();
    let each = |length: &Length| length.weight / weights * length.us / 1e6;
    let capacity = LOAD * cores() as f64;
    let gap = lengths.iter().map(each).sum::<f64>() / capacity;
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut at, mut work) = (0.0, 0.0);
    let mut arrivals = Vec::new();
    while at < time.as_secs_f64() {
        at -= gap * (1.0 - random.f64()).ln();
        let mut left = random.f64() * weights;
        let length = lengths.iter().position(|length| {
            left -= length.weight;
            left < 0.0
        });
        let length = length.unwrap_or(lengths.len() - 1);
        work += lengths[length].us / 1e6;
        arrivals.push((at, length));
    }
    let stretch = work / capacity / at;
    let arrival = |(at, length)| Arrival {
        at: Duration::from_secs_f64(at * stretch),
        length,
    };
    arrivals.into_iter().map(arrival).collect()
}
