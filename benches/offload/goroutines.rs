//! The contender in Go: `benches/go/offload`.

use crate::args::{Measurement, Plan};
use crate::measure::Found;
use crate::support::go::Go;

pub const NAME: &str = "goroutine + channel";

/// Its metrics, by the name that the program prints, and the measurement that
/// each belongs to.
const METRICS: [(&str, &str, Measurement); 7] = [
    ("hot", "hot", Measurement::Hot),
    ("hot_cpu", "hot cpu", Measurement::Hot),
    ("cold", "cold", Measurement::Cold),
    ("cold_cpu", "cold cpu", Measurement::Cold),
    ("busy", "busy", Measurement::Busy),
    ("batch_100", "batch of 100", Measurement::Batch),
    ("batch", "batch", Measurement::Batch),
];

pub fn run(go: &Go, plan: &Plan) -> Found {
    let printed = go.run(&[
        format!("-hot={}", plan.hot_trips),
        format!("-cold={}", plan.cold_trips),
        format!("-busy={}", plan.busy_trips),
        format!("-batch={}", plan.large_batch),
        format!("-small-batches={}", plan.small_batches),
    ]);
    METRICS
        .iter()
        .filter(|(_, _, of)| plan.measurements.contains(of))
        .map(|(key, metric, _)| {
            let value = printed[key].as_f64();
            (*metric, value.expect("a figure for each metric"))
        })
        .collect()
}
