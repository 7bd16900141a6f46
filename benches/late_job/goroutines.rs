//! The contender in Go, a process of its own: `benches/go/late_job`.

use std::time::Duration;

use serde_json::Value;

use crate::args::Plan;
use crate::arrivals::Schedule;
use crate::fib::SMALL;
use crate::outcome::{Late, Outcome};
use crate::support::go::Go;

pub fn run(go: &Go, plan: &Plan, late: Schedule, bound: Duration) -> Outcome {
    // Its own bound is the first to end it, or it would outlive us.
    let bound = bound.mul_f64(0.9);
    let args = [
        format!("-k={}", plan.k),
        format!("-jobs={}", plan.jobs),
        format!("-late-k={SMALL}"),
        format!("-late-jobs={}", late.count),
        format!("-late-every={}us", late.every.as_micros()),
        format!("-late-from={}", plan.late_from),
        format!("-bound={}ms", bound.as_millis()),
    ];
    outcome(&go.run(&args)).expect("what goroutines print")
}

fn outcome(found: &Value) -> Option<Outcome> {
    let time = |ns: &Value| ns.as_u64().map(Duration::from_nanos);
    let late = |one: &Value| {
        Some(Late {
            intended: time(&one["intended_ns"])?,
            submitted: time(&one["submitted_ns"])?,
            ended: time(&one["ended_ns"])?,
            awaited: None,
        })
    };
    Some(Outcome {
        others: None,
        long_ends: found["long_ends_ns"]
            .as_array()?
            .iter()
            .map(time)
            .collect::<Option<_>>()?,
        late: found["late"]
            .as_array()?
            .iter()
            .map(late)
            .collect::<Option<_>>()?,
    })
}
