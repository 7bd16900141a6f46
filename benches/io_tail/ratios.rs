//! One contender over another.
//!
//! Each slice is compared with the other contender's slice of the same round,
//! and the median of these says what a usual slice is like. `_pooled` compares
//! all slices in one, in which one bad second counts for what it is.

use crate::contender::Contender::{self, Awake, Idle, SecondRuntime, TwolaneRayon, TwolaneRuntime};
use crate::findings::Findings;
use crate::slice::Slice;
use crate::support::{Ratio, median};
use crate::tail::client::Latencies;

pub struct Named {
    pub name: String,
    pub found: Ratio,
}

/// All of them, for either backend. One that lacks a contender is NaN.
pub fn all(findings: &Findings) -> Vec<Named> {
    let mut all = Vec::new();
    for (twolane, suffix) in [(TwolaneRayon, ""), (TwolaneRuntime, "_runtime")] {
        let mut latency = |name: &str, q: f64, over: Contender, under: Contender| {
            let quantile = |latencies: &Latencies| latencies.from_send.value_at_quantile(q) as f64;
            let of = |slice: &Slice| quantile(&slice.latencies);
            let pooled = |contender| match findings.slices(contender) {
                [] => f64::NAN,
                _ => quantile(&findings.pooled(contender)),
            };
            all.push(Named {
                name: format!("{name}{suffix}"),
                found: by_slices(findings, of, over, under),
            });
            all.push(Named {
                name: format!("{name}{suffix}_pooled"),
                found: once(pooled(over) / pooled(under)),
            });
        };
        latency("p999_twolane_over_idle", 0.999, twolane, Idle);
        latency("p999_twolane_over_awake", 0.999, twolane, Awake);
        latency("p99_twolane_over_idle", 0.99, twolane, Idle);
        latency(
            "p999_second_runtime_over_twolane",
            0.999,
            SecondRuntime,
            twolane,
        );
        let jobs = |slice: &Slice| slice.jobs_per_s;
        all.push(Named {
            name: format!("cpu_throughput_twolane_over_second_runtime{suffix}"),
            found: by_slices(findings, jobs, twolane, SecondRuntime),
        });
        // Slices are equally long, so their mean is that of all in one.
        let mean = |contender| {
            let slices = findings.slices(contender);
            slices.iter().map(jobs).sum::<f64>() / slices.len() as f64
        };
        all.push(Named {
            name: format!("cpu_throughput_twolane_over_second_runtime{suffix}_pooled"),
            found: once(mean(twolane) / mean(SecondRuntime)),
        });
    }
    all
}

fn by_slices(
    findings: &Findings,
    of: impl Fn(&Slice) -> f64,
    over: Contender,
    under: Contender,
) -> Ratio {
    Ratio::of_rounds(
        findings.slices(over).iter().map(&of),
        findings.slices(under).iter().map(&of),
    )
}

fn once(value: f64) -> Ratio {
    Ratio {
        median: median([value]),
        least: value,
        most: value,
    }
}

pub fn print(ratios: &[Named]) {
    println!("\nRatios: the median of the slices' own (least to most); `_pooled`: all in one.\n");
    for ratio in ratios.iter().filter(|ratio| !ratio.found.median.is_nan()) {
        if ratio.name.ends_with("_pooled") {
            println!("  {:58} {:.3}", ratio.name, ratio.found.median);
        } else {
            println!("  {:58} {}", ratio.name, ratio.found);
        }
    }
    println!();
}
