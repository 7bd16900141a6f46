//! The same numbers as a JSON file, in the shape that all benches of this crate share.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::contender::Contender;
use crate::extra::{self, Case};
use crate::findings::Findings;
use crate::gate::Busy;
use crate::round::{Request, SEGMENTS};
use crate::stats::{max, mean, percentile};
use crate::tables::SLICES;

pub fn write(findings: &Findings, path: &Path) -> std::io::Result<()> {
    let cores = std::thread::available_parallelism()?.get();
    let mut rows = Vec::new();
    for contender in Contender::ALL {
        for busy in Busy::ALL {
            rows.extend(s1_rows(findings, contender, busy));
        }
    }
    for case in Case::ALL {
        for contender in extra::CONTENDERS {
            rows.extend(extra_rows(findings, case, contender));
        }
    }
    let file = json!({
        "bench": "tokio_debug",
        "machine": { "cores": cores },
        "rows": rows,
        "ratios": ratios(findings),
    });
    std::fs::write(path, format!("{file:#}\n"))
}

fn row(contender: Contender, metric: String, unit: &str, value: f64, n: usize) -> Value {
    json!({
        "contender": contender.key(), "metric": metric, "unit": unit, "value": round(value), "n": n,
    })
}

fn s1_rows(findings: &Findings, contender: Contender, busy: Busy) -> Vec<Value> {
    let samples = findings.latencies(contender, busy);
    let (stalled, n) = findings.stalled(contender, Some(busy));
    let of = |metric: &str| format!("{}/{metric}", busy.key());
    let mut rows = vec![
        row(contender, of("stalled"), "requests", stalled as f64, n),
        row(contender, of("p50"), "ms", percentile(&samples, 50.0), n),
        row(contender, of("p99"), "ms", percentile(&samples, 99.0), n),
        row(contender, of("max"), "ms", max(&samples), n),
    ];
    let requests = findings.requests(contender, busy);
    let stalled: Vec<&Request> = requests.into_iter().filter(|r| r.stalled()).collect();
    if !stalled.is_empty() {
        for (i, segment) in SEGMENTS.iter().enumerate() {
            let times: Vec<f64> = stalled.iter().map(|r| r.segments_ms()[i]).collect();
            let metric = of(&format!("stalled/mean {segment}"));
            rows.push(row(contender, metric, "ms", mean(&times), times.len()));
        }
    }
    rows
}

fn extra_rows(findings: &Findings, case: Case, contender: Contender) -> [Value; 3] {
    let samples = findings.extra(case, contender);
    let took: Vec<f64> = samples.iter().map(|s| s.took_ms).collect();
    let bad = samples.iter().filter(|s| s.bad).count() as f64;
    let of = |metric: &str| format!("{}/{metric}", case.key());
    let n = samples.len();
    [
        row(contender, of(case.counts()), "tries", bad, n),
        row(contender, of("p50"), "ms", percentile(&took, 50.0), n),
        row(contender, of("max"), "ms", max(&took), n),
    ]
}

fn ratios(findings: &Findings) -> Map<String, Value> {
    let mut ratios = Map::new();
    let mut put = |name: String, value: f64| ratios.insert(name, json!(round(value)));
    for (name, contender) in [
        ("shared", Contender::Shared),
        ("twolane", Contender::Twolane),
    ] {
        let fraction = |busy| {
            let (stalled, all) = findings.stalled(contender, busy);
            stalled as f64 / all as f64
        };
        put(format!("{name}_stalled_fraction"), fraction(None));
        for busy in Busy::ALL {
            put(
                format!("{name}_stalled_fraction_{}", busy.key()),
                fraction(Some(busy)),
            );
        }
    }
    let worse = Busy::ALL.map(|busy| findings.p99_ratio(busy));
    put("twolane_p99_over_alone_p99".into(), max(&worse));
    for busy in Busy::ALL {
        let name = format!("twolane_p99_over_alone_p99_{}", busy.key());
        let slices = findings.p99_ratio_slices(busy, SLICES);
        let min = slices.iter().copied().fold(f64::NAN, f64::min);
        put(format!("{name}_slices_min"), min);
        put(format!("{name}_slices_max"), max(&slices));
        put(name, findings.p99_ratio(busy));
    }
    ratios
}

/// Four decimals: what is measured here is not known better.
fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
