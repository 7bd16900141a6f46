//! The contender in Go, a process of its own: `benches/go/switch`.

use serde_json::Value;

use crate::case::{BATCH, Case, Figures};
use crate::contender::Width;
use crate::plan::Plan;
use crate::support::go::Go;

pub fn run(go: &Go, width: Width, plan: &Plan) -> Figures {
    // Its own bound is the first to end it, or it would outlive us.
    let bound = plan.bound.mul_f64(0.9);
    let procs = match width {
        Width::One => 1,
        // As it comes.
        Width::Cores => 0,
    };
    let args = [
        format!("-procs={procs}"),
        format!("-switches={}", plan.switches),
        format!("-starts={}", plan.starts),
        format!("-batches={}", plan.batches),
        format!("-batch={BATCH}"),
        format!("-bound={}ms", bound.as_millis()),
    ];
    let found: Value = go.run(&args);
    let figure = |case: Case| Some((case, found.get(case.key())?.as_f64()?));
    Case::ALL.into_iter().filter_map(figure).collect()
}
