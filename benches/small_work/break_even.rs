//! From which size on: what the tables come to.

use crate::found::Found;
use crate::lanes::IoRuntime;
use crate::plan::{COMPARED, Plan, Size};
use crate::support::Ratio;
use crate::tail::findings::FROM_SEND;
use crate::ways::Way;

/// How much of inline's throughput an offload has to reach.
const ENOUGH: f64 = 0.9;
/// Microseconds that another task may wait.
const TOO_LATE: f64 = 1_000.0;

/// A size from which on something holds for all that were measured.
pub struct BreakEven {
    /// In the report.
    pub name: String,
    pub sentence: String,
    pub from: Option<Size>,
}

/// The sizes are rows that were measured: nothing between them is guessed.
pub fn all(plan: &Plan, found: &Found, io: IoRuntime) -> Vec<BreakEven> {
    let from = |holds: &dyn Fn(Size) -> bool| {
        let holding = plan.sizes.iter().rev().take_while(|size| holds(**size));
        holding.last().copied()
    };
    let reaches = |way| {
        from(&|size| {
            let Ratio { median, .. } = found.throughput(io, size, way, Way::Inline);
            median >= ENOUGH
        })
    };
    let is_late = |way| from(&|size| found.latency(io, size, way, FROM_SEND, 0.99) > TOO_LATE);
    let line = |name: &str, sentence: &str, from: Option<Size>| {
        let sentence = match from {
            Some(size) => format!("{sentence} from {size} on"),
            None => format!("{sentence} for none of these sizes"),
        };
        BreakEven {
            name: format!("{name}{}", suffix(io)),
            sentence,
            from,
        }
    };
    let percent = ENOUGH * 100.0;
    let throughput = format!("reaches {percent} % of inline throughput");
    vec![
        line(
            "offload_break_even_us",
            &format!("offloaded one by one {throughput}"),
            reaches(Way::OneByOne),
        ),
        line(
            "several_break_even_us",
            &format!("offloaded several at once {throughput}"),
            reaches(Way::SeveralAtOnce),
        ),
        line(
            "batch_break_even_us",
            &format!("offloaded in batches of 1 ms {throughput}"),
            reaches(Way::Batches),
        ),
        line(
            "inline_late_from_us",
            "inline, another task's p99 is above 1 ms",
            is_late(Way::Inline),
        ),
        line(
            "inline_yields_late_from_us",
            "inline with a yield after each piece, another task's p99 is above 1 ms",
            is_late(Way::Yielding),
        ),
        line(
            "offload_late_from_us",
            "offloaded one by one, another task's p99 is above 1 ms",
            is_late(Way::OneByOne),
        ),
    ]
}

/// How much later another task is when a piece of [`COMPARED`] size is inline.
pub fn latency_ratios(found: &Found, io: IoRuntime) -> [(String, Ratio); 2] {
    [("inline", Way::Inline), ("inline_yields", Way::Yielding)].map(|(name, way)| {
        let ways = (way, Way::OneByOne);
        let ratio = found.latency_ratio((io, COMPARED), ways, FROM_SEND, 0.99);
        let name = format!("{name}_p99_over_offloaded_{}us{}", COMPARED.0, suffix(io));
        (name, ratio)
    })
}

fn suffix(io: IoRuntime) -> &'static str {
    match io {
        IoRuntime::TwoWorkers => "",
        IoRuntime::CurrentThread => "_current_thread",
    }
}
