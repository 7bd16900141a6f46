//! The picture: the io side's ten requests of one round, a bar each, coloured by where the time
//! went, and below them when the CPU threads were busy. One panel for each contender shown.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::contender::Contender;
use crate::findings::Findings;
use crate::gate::Busy;
use crate::round::{Request, Round, SEGMENTS, ms};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;

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

const WIDTH: i32 = 960;
const LEFT: i32 = 84;
const RIGHT: i32 = 28;
const TOP: i32 = 96;
const BOTTOM: i32 = 52;
const ROW: i32 = 15;
const HEADING: i32 = 30;
const GAP: i32 = 14;

const COLOURS: [RGBColor; 4] = [
    RGBColor(233, 162, 59),
    RGBColor(91, 155, 112),
    RGBColor(199, 70, 62),
    RGBColor(110, 91, 167),
];
const BUSY: RGBColor = RGBColor(176, 183, 193);
const INK: RGBColor = RGBColor(38, 43, 51);
const FAINT: RGBColor = RGBColor(112, 120, 132);
const GRID: RGBColor = RGBColor(229, 232, 236);

/// Writes the picture; false if there was nothing to show.
pub fn draw(findings: &Findings, path: &Path) -> Result<bool, Box<dyn Error>> {
    let panels: Vec<_> = PANELS
        .iter()
        .filter_map(|(contender, title)| Some((representative(findings, *contender)?, *title)))
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
    let size = (WIDTH as u32, (TOP + heights + BOTTOM) as u32);
    let area = SVGBackend::new(path, size).into_drawing_area();
    area.fill(&WHITE)?;
    text(
        &area,
        "Ten requests that should each take 50 ms",
        (LEFT, 14),
        19,
        &INK,
        HPos::Left,
    )?;
    legend(&area)?;
    let mut y = TOP;
    for (round, title) in &panels {
        panel(&area, round, title, y, span)?;
        y += panel_height(round);
    }
    axis(&area, y, span)?;
    area.present()?;
    Ok(true)
}

/// A round to stand for the others: of those that stalled (if any did) the one whose number of
/// stalled requests, then whose slowest request, is the median. Of those that did not, one that was
/// not cut short shows more.
fn representative(findings: &Findings, contender: Contender) -> Option<&Round> {
    let mut rounds: Vec<&Round> = findings.rounds(contender, Busy::Sleep).collect();
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

fn panel_height(round: &Round) -> i32 {
    HEADING + ROW * (round.requests.len() + threads(round).len()) as i32 + 5 + GAP
}

fn x_of(at_ms: f64, span: f64) -> i32 {
    LEFT + (at_ms / span * f64::from(WIDTH - LEFT - RIGHT)).round() as i32
}

fn panel(area: &Area, round: &Round, title: &str, top: i32, span: f64) -> Drawn {
    let heading = format!(
        "{title}: {} of {} stalled",
        round.stalled(),
        round.requests.len()
    );
    text(area, &heading, (LEFT, top + 6), 14, &INK, HPos::Left)?;
    let rows = top + HEADING;
    let bottom = top + panel_height(round) - GAP;
    grid(area, rows, bottom, span)?;
    let at = |instant: Instant| x_of(ms(round.start, instant), span);
    for (i, request) in round.requests.iter().enumerate() {
        let y = rows + ROW * i as i32;
        text(
            area,
            &format!("io {}", i + 1),
            (LEFT - 8, y + 2),
            11,
            &FAINT,
            HPos::Right,
        )?;
        let marks = [
            request.submitted,
            request.seen,
            request.answered,
            request.delivered,
            request.ready,
        ];
        for (ends, colour) in marks.windows(2).zip(&COLOURS) {
            bar(area, at(ends[0]), at(ends[1]), y, colour)?;
        }
        let x = at(request.ready) + 6;
        text(area, &label(request), (x, y + 2), 11, &FAINT, HPos::Left)?;
    }
    for (i, name) in threads(round).into_iter().enumerate() {
        let y = rows + ROW * (round.requests.len() + i) as i32 + 5;
        text(area, name, (LEFT - 8, y + 2), 11, &FAINT, HPos::Right)?;
        for span in round.spans.iter().filter(|span| span.thread == name) {
            // One pixel less, so that one job can be told from the next.
            bar(area, at(span.from), at(span.to) - 1, y, &BUSY)?;
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

fn bar(area: &Area, from: i32, to: i32, y: i32, colour: &RGBColor) -> Drawn {
    if to > from {
        area.draw(&Rectangle::new(
            [(from, y + 2), (to, y + ROW - 2)],
            colour.filled(),
        ))?;
    }
    Ok(())
}

fn legend(area: &Area) -> Drawn {
    let entries = COLOURS
        .iter()
        .zip(SEGMENTS)
        .chain([(&BUSY, "CPU thread busy")]);
    // SVG text has no width until it is shown: near enough for a sans-serif of this size.
    let width = |name: &str| 34 + (name.len() as f64 * 6.1) as i32;
    let mut x = LEFT;
    for (colour, name) in entries {
        area.draw(&Rectangle::new([(x, 52), (x + 12, 64)], colour.filled()))?;
        text(area, name, (x + 17, 52), 12, &INK, HPos::Left)?;
        x += width(name);
    }
    Ok(())
}

/// The times that get a line and a number.
fn ticks(span: f64) -> impl Iterator<Item = f64> {
    let step = if span > 600.0 { 100.0 } else { 50.0 };
    (0..=(span / step) as u32).map(move |i| f64::from(i) * step)
}

fn grid(area: &Area, top: i32, bottom: i32, span: f64) -> Drawn {
    for tick in ticks(span) {
        let x = x_of(tick, span);
        area.draw(&PathElement::new([(x, top), (x, bottom)], GRID))?;
    }
    Ok(())
}

fn axis(area: &Area, y: i32, span: f64) -> Drawn {
    let y = y - GAP;
    area.draw(&PathElement::new([(LEFT, y), (x_of(span, span), y)], FAINT))?;
    for tick in ticks(span) {
        let x = x_of(tick, span);
        text(
            area,
            &format!("{tick:.0}"),
            (x, y + 6),
            11,
            &FAINT,
            HPos::Center,
        )?;
    }
    let middle = (LEFT + WIDTH - RIGHT) / 2;
    let caption =
        "ms since the start of the round; a request is submitted every 10 ms on each side";
    text(area, caption, (middle, y + 26), 12, &FAINT, HPos::Center)
}

fn text(
    area: &Area,
    words: &str,
    at: (i32, i32),
    size: u32,
    colour: &RGBColor,
    align: HPos,
) -> Drawn {
    let style = ("sans-serif", size)
        .into_font()
        .color(colour)
        .pos(Pos::new(align, VPos::Top));
    area.draw(&Text::new(words, at, style))?;
    Ok(())
}
