//! One contender over another.
//!
//! The median of the slices' own ratios says what a usual slice is like.
//! `_pooled` compares all slices in one, in which one bad second counts for
//! what it is. Latencies are from the send; `_intended`: from when it was due.

use crate::Findings;
use crate::contender::Contender::{Awake, Idle, SecondRuntime, TwolaneRayon, TwolaneRuntime};
use crate::slice::Slice;
use crate::tail::figures::Named;
use crate::tail::findings::{FROM_INTENDED, FROM_SEND};

/// All of them, for either backend.
pub fn all(findings: &Findings) -> Vec<Named> {
    let mut all = Vec::new();
    for (twolane, suffix) in [(TwolaneRayon, ""), (TwolaneRuntime, "_runtime")] {
        for (name, q, over, under) in [
            ("p999_twolane_over_idle", 0.999, twolane, Idle),
            ("p999_twolane_over_awake", 0.999, twolane, Awake),
            ("p99_twolane_over_idle", 0.99, twolane, Idle),
            (
                "p999_second_runtime_over_twolane",
                0.999,
                SecondRuntime,
                twolane,
            ),
        ] {
            let by_slices = findings.latency_ratio(FROM_SEND, q, over, under);
            let pooled = findings.pooled_latency_ratio(FROM_SEND, q, over, under);
            let intended = findings.latency_ratio(FROM_INTENDED, q, over, under);
            all.push(Named::new(format!("{name}{suffix}"), by_slices));
            all.push(Named::once(format!("{name}{suffix}_pooled"), pooled));
            all.push(Named::new(format!("{name}{suffix}_intended"), intended));
        }
        let name = "cpu_throughput_twolane_over_second_runtime";
        let jobs = |slice: &Slice| slice.jobs_per_s;
        let by_slices = findings.ratio(jobs, twolane, SecondRuntime);
        let pooled = findings.mean(twolane, jobs) / findings.mean(SecondRuntime, jobs);
        all.push(Named::new(format!("{name}{suffix}"), by_slices));
        all.push(Named::once(format!("{name}{suffix}_pooled"), pooled));
    }
    all
}
