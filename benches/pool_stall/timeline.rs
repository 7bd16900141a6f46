//! The picture: the io side's ten requests of one round, a bar each, coloured by where the time
//! went, and below them when the CPU threads were busy. One panel for each contender shown.

use std::path::Path;
use std::time::Instant;

use plotters::style::RGBColor;

use twolane_benches::picture::timeline::{GAP, HEADING, ROW, TOP, Timeline};
use twolane_benches::picture::words::Drawn;

use crate::contender::Contender;
use crate::gate::Busy;
use crate::round::{Request, Round, SEGMENTS, ms};

const PANELS: [(Contender, &str); 3] = [
    (
        Contender::Shared,
        "Two runtimes share one reqwest::Client, as published",
    ),
    (
        Contender::Connector,
        "The same, connects moved to the io runtime by connector_layer",
    ),
    (
        Contender::Twolane,
        "twolane: the CPU jobs' requests go through send_io()",
    ),
];

const COLOURS: [RGBColor; 4] = [
    RGBColor(233, 162, 59),
    RGBColor(91, 155, 112),
    RGBColor(199, 70, 62),
    RGBColor(110, 91, 167),
];
const BUSY: RGBColor = RGBColor(176, 183, 193);

/// Writes the picture; false if there was nothing to show.
pub fn draw(rounds: &[Round], path: &Path) -> Result<bool, Box<dyn std::error::Error>> {
    let panels: Vec<_> = PANELS
        .iter()
        .filter_map(|(contender, title)| Some((representative(rounds, *contender)?, *title)))
        .collect();
    if panels.is_empty() {
        return Ok(false);
    }
    let last = panels
        .iter()
        .map(|(round, _)| end_ms(round))
        .fold(0.0, f64::max);
    let span = (last * 1.27 / 100.0).ceil() * 100.0;
    let heights: i32 = panels.iter().map(|(round, _)| panel_height(round)).sum();
    let title = "Ten requests that should each take 50 ms";
    let timeline = Timeline::new(path, title, heights, span)?;
    let segments = COLOURS.iter().zip(SEGMENTS);
    timeline.legend(segments.chain([(&BUSY, "CPU thread busy")]))?;
    let mut y = TOP;
    for (round, title) in &panels {
        panel(&timeline, round, title, y)?;
        y += panel_height(round);
    }
    let caption =
        "ms since the start of the round; a request is submitted every 10 ms on each side";
    timeline.finish(y, caption)?;
    Ok(true)
}

/// A round to stand for the others: of those that stalled (if any did) the one whose number of
/// stalled requests, then whose slowest request, is the median. Of those that did not, one that was
/// not cut short shows more.
fn representative(rounds: &[Round], contender: Contender) -> Option<&Round> {
    let its = |round: &&Round| round.contender == contender && round.busy == Busy::Sleep;
    let mut rounds: Vec<&Round> = rounds.iter().filter(its).collect();
    if rounds.iter().any(|round| round.stalled() > 0) {
        rounds.retain(|round| round.stalled() > 0);
    } else if rounds.iter().any(|round| round.whole) {
        rounds.retain(|round| round.whole);
    }
    rounds.sort_by(|a, b| {
        let stalled = a.stalled().cmp(&b.stalled());
        stalled.then(a.slowest_ms().total_cmp(&b.slowest_ms()))
    });
    rounds.get(rounds.len() / 2).copied()
}

fn end_ms(round: &Round) -> f64 {
    let ends = round
        .requests
        .iter()
        .map(|request| ms(round.start, request.ready));
    ends.fold(0.0, f64::max)
}

/// The CPU threads of a round, by name.
fn threads(round: &Round) -> Vec<&str> {
    let mut names: Vec<&str> = round
        .spans
        .iter()
        .map(|span| span.thread.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn rows_height(round: &Round) -> i32 {
    ROW * (round.requests.len() + threads(round).len()) as i32 + 5
}

fn panel_height(round: &Round) -> i32 {
    HEADING + rows_height(round) + GAP
}

fn panel(timeline: &Timeline<'_>, round: &Round, title: &str, top: i32) -> Drawn {
    let heading = format!(
        "{title}: {} of {} stalled",
        round.stalled(),
        round.requests.len()
    );
    timeline.panel(&heading, top, rows_height(round))?;
    let rows = top + HEADING;
    let at = |instant: Instant| ms(round.start, instant);
    for (i, request) in round.requests.iter().enumerate() {
        let y = rows + ROW * i as i32;
        timeline.name(&format!("io {}", i + 1), y)?;
        let marks = [
            request.submitted,
            request.seen,
            request.answered,
            request.delivered,
            request.ready,
        ];
        for (ends, colour) in marks.windows(2).zip(&COLOURS) {
            timeline.bar(at(ends[0]), at(ends[1]), y, colour)?;
        }
        timeline.note(&label(request), at(request.ready), y)?;
    }
    for (i, name) in threads(round).into_iter().enumerate() {
        let y = rows + ROW * (round.requests.len() + i) as i32 + 5;
        timeline.name(name, y)?;
        for span in round.spans.iter().filter(|span| span.thread == name) {
            timeline.bar_apart(at(span.from), at(span.to), y, &BUSY)?;
        }
    }
    Ok(())
}

fn label(request: &Request) -> String {
    let latency = request.latency_ms();
    if request.stalled() {
        format!(
            "{latency:.0} ms (opened by {}, driven by {})",
            request.opened_by, request.driven_by
        )
    } else {
        format!("{latency:.0}")
    }
}
