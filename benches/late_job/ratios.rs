//! The figures that the bench is there for.

use crate::arrivals::Source;
use crate::contender::{Contender, Entry};
use crate::outcome::{Count, Found, Outcome};
use crate::support::Ratio;

/// One line of them. `None`: not both sides ran.
pub struct Line {
    pub name: String,
    pub ratio: Option<Ratio>,
    pub unit: &'static str,
}

type Figure = fn(&Outcome) -> Option<f64>;

/// Of the runs whose source was a thread; if both were asked for, also of the
/// others, under names that say so.
pub fn of(entries: &[Entry], found: &Found) -> Vec<Line> {
    let has = |source| {
        let mut rust = entries.iter().filter(|e| !e.contender.is_go());
        rust.any(|e| e.source == source)
    };
    let mut lines = Vec::new();
    let both = has(Source::Thread) && has(Source::Tokio);
    if has(Source::Thread) || !has(Source::Tokio) {
        lines.extend(of_source(entries, found, Source::Thread, ""));
    }
    if has(Source::Tokio) {
        let suffix = if both { "_tokio_timer" } else { "" };
        lines.extend(of_source(entries, found, Source::Tokio, suffix));
    }
    lines
}

fn of_source(entries: &[Entry], found: &Found, source: Source, suffix: &str) -> Vec<Line> {
    use Contender::{
        Goroutines, GoroutinesSparse, Rayon, StartedFuturesRayon, StartedFuturesRuntime,
        TwolaneFuturesRayon, TwolaneFuturesRuntime, TwolaneHigh, TwolaneHighSparse,
    };
    let rounds = |contender: Contender, figure: Figure| {
        let is_it =
            |e: &&Entry| e.contender == contender && (e.source == source || contender.is_go());
        found.figures(*entries.iter().find(is_it)?, figure)
    };
    let ratio = |name: &str, over: Contender, under: Contender, figure: Figure| Line {
        name: format!("{name}{suffix}"),
        ratio: rounds(over, figure)
            .zip(rounds(under, figure))
            .map(|(over, under)| Ratio::of_rounds(over, under)),
        unit: "",
    };
    let value = |name: &str, contender: Contender, figure: Figure| Line {
        name: format!("{name}{suffix}"),
        ratio: rounds(contender, figure).map(|values| {
            let ones = vec![1.0; values.len()];
            Ratio::of_rounds(values, ones)
        }),
        unit: "ms",
    };
    let total: Figure = Outcome::total;
    let p50: Figure = |o| Some(o.tail(Count::Intended)?.p50);
    let p99: Figure = |o| Some(o.tail(Count::Intended)?.p99);
    let p99_of_call: Figure = |o| Some(o.tail(Count::Submission)?.p99);
    vec![
        ratio("total_twolane_over_rayon", TwolaneHigh, Rayon, total),
        ratio(
            "total_twolane_futures_over_rayon",
            TwolaneFuturesRayon,
            Rayon,
            total,
        ),
        ratio(
            "total_twolane_futures_runtime_over_rayon",
            TwolaneFuturesRuntime,
            Rayon,
            total,
        ),
        ratio(
            "late_p99_twolane_high_over_go",
            TwolaneHigh,
            Goroutines,
            p99,
        ),
        ratio(
            "late_p99_twolane_high_over_go_from_submission",
            TwolaneHigh,
            Goroutines,
            p99_of_call,
        ),
        ratio(
            "late_p99_twolane_high_over_go_sparse",
            TwolaneHighSparse,
            GoroutinesSparse,
            p99,
        ),
        ratio(
            "late_p99_twolane_high_over_go_from_submission_sparse",
            TwolaneHighSparse,
            GoroutinesSparse,
            p99_of_call,
        ),
        ratio("late_p50_rayon_over_twolane_high", Rayon, TwolaneHigh, p50),
        value("late_p99_ms_yielding_futures", StartedFuturesRayon, p99),
        value(
            "late_p99_ms_yielding_futures_runtime",
            StartedFuturesRuntime,
            p99,
        ),
    ]
}
