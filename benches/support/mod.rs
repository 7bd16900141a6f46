//! What the benches share: their switches, their order, their figures, their
//! report.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each bench uses a part of it, and none is a library"
)]

pub mod cpu_time;
#[path = "../../examples/support/folder.rs"]
mod found;
pub mod go;
pub mod others;
pub mod threads;
pub mod watchdog;

use std::path::PathBuf;

use serde_json::{Map, Value, json};

/// `cargo bench` passes `--bench`; `-- --quick` and `-- --test` ask for a run
/// that ends within a minute and whose figures mean little.
pub fn is_quick() -> bool {
    has_flag("--quick") || has_flag("--test")
}

pub fn has_flag(flag: &str) -> bool {
    std::env::args().any(|arg| arg == flag)
}

/// The contenders of one round, each once, beginning with another one in each
/// round: what the machine does besides falls on all alike.
pub fn in_turn(contenders: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..contenders).map(move |turn| (turn + round) % contenders)
}

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
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

pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

/// A ratio of two contenders that ran in the same rounds: the median of the
/// rounds' own ratios, and the range of them.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Ratio {
    pub fn of_rounds(
        numerators: impl IntoIterator<Item = f64>,
        denominators: impl IntoIterator<Item = f64>,
    ) -> Self {
        let pairs = numerators.into_iter().zip(denominators);
        let ratios: Vec<f64> = pairs.map(|(n, d)| n / d).collect();
        Self {
            median: median(ratios.iter().copied()),
            least: quantile(ratios.iter().copied(), 0.0),
            most: quantile(ratios, 1.0),
        }
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            median,
            least,
            most,
        } = self;
        write!(f, "{median:.3} ({least:.3} to {most:.3})")
    }
}

/// The figures as a file: `target/twolane/BENCH.json`.
pub struct Report {
    bench: &'static str,
    rows: Vec<Value>,
    ratios: Map<String, Value>,
}

impl Report {
    pub fn new(bench: &'static str) -> Self {
        Self {
            bench,
            rows: Vec::new(),
            ratios: Map::new(),
        }
    }

    /// `n` samples (or rounds) stand behind `value`. One that could not be
    /// measured is written as `null`.
    pub fn row(&mut self, contender: &str, metric: &str, unit: &str, value: f64, n: usize) {
        self.rows.push(json!({
            "contender": contender, "metric": metric, "unit": unit, "value": value, "n": n,
        }));
    }

    pub fn ratio(&mut self, name: &str, value: f64) {
        self.ratios.insert(name.to_owned(), json!(value));
    }

    /// Writes the file, says so, and returns the folder, for pictures.
    pub fn write(&self) -> PathBuf {
        let found = json!({
            "bench": self.bench,
            "machine": {"cores": cores()},
            "rows": self.rows,
            "ratios": self.ratios,
        });
        let folder = folder();
        let file = folder.join(format!("{}.json", self.bench));
        std::fs::write(&file, format!("{found:#}\n")).unwrap();
        println!("written to {}", file.display());
        folder
    }
}

/// `target/twolane`, made if need be.
pub fn folder() -> PathBuf {
    found::folder().unwrap()
}
