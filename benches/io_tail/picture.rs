//! The picture: how many of the requests took longer than so long. Two panels,
//! from the actual and from the intended send, with a line for each contender.
//!
//! Both axes are logarithmic, the upright one in the fraction of requests that
//! are *not* yet answered: each decade is one more nine.

use std::path::Path;

use hdrhistogram::Histogram;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use twolane_benches::Findings;
use twolane_benches::picture::words::{Area, Drawn, FAINT, GRID, INK, text};

const WIDTH: i32 = 980;
const LEFT: i32 = 70;
/// Where the plot ends and the legend begins.
const RIGHT: i32 = 730;
const TOP: i32 = 56;
const PANEL: i32 = 330;
const GAP: i32 = 58;
const BOTTOM: i32 = 56;

/// Microseconds.
const SHORTEST: f64 = 5.0;
const LONGEST: f64 = 1e7;
const LATENCIES: [(f64, &str); 7] = [
    (1e1, "10 µs"),
    (1e2, "100 µs"),
    (1e3, "1 ms"),
    (1e4, "10 ms"),
    (1e5, "100 ms"),
    (1e6, "1 s"),
    (1e7, "10 s"),
];
/// The fraction that took longer.
const TAILS: [(f64, &str); 5] = [
    (0.5, "50 %"),
    (0.1, "90 %"),
    (0.01, "99 %"),
    (0.001, "99.9 %"),
    (0.0001, "99.99 %"),
];
/// A line ends where its slowest request is, but not above this.
const LEAST_TAIL: f64 = 0.00002;

pub fn draw(findings: &Findings, path: &Path) -> Drawn {
    let height = TOP + 2 * PANEL + GAP + BOTTOM;
    let area = SVGBackend::new(path, (WIDTH as u32, height as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let title = "Round trips to the I/O lane while the CPU lane is saturated";
    text(&area, title, (LEFT, 12), 18, &INK, HPos::Left)?;
    let is_drawn = |name: &&str| findings.pooled(name, "from_send").is_some();
    let drawn: Vec<&str> = findings.contenders().filter(is_drawn).collect();

    let panels = [
        ("counted from the actual send", "from_send"),
        ("counted from the intended send", "from_intended"),
    ];
    for (i, (heading, latencies)) in panels.into_iter().enumerate() {
        let top = TOP + i as i32 * (PANEL + GAP);
        text(&area, heading, (LEFT, top - 19), 13, &INK, HPos::Left)?;
        axes(&area, top)?;
        for name in &drawn {
            if let Some(latencies) = findings.pooled(name, latencies) {
                line(&area, top, name, latencies)?;
            }
        }
    }
    let caption = "latency; upright: the share of requests answered within it";
    let middle = (LEFT + RIGHT) / 2;
    text(
        &area,
        caption,
        (middle, height - 28),
        12,
        &FAINT,
        HPos::Center,
    )?;
    legend(&area, &drawn)?;
    area.present()?;
    Ok(())
}

fn x_of(us: f64) -> i32 {
    let share = (us / SHORTEST).log10() / (LONGEST / SHORTEST).log10();
    LEFT + (share.clamp(0.0, 1.0) * f64::from(RIGHT - LEFT)).round() as i32
}

fn y_of(tail: f64, top: i32) -> i32 {
    let share = tail.log10() / LEAST_TAIL.log10();
    top + PANEL - (share.clamp(0.0, 1.0) * f64::from(PANEL)).round() as i32
}

fn axes(area: &Area, top: i32) -> Drawn {
    let bottom = top + PANEL;
    for (us, label) in LATENCIES {
        let x = x_of(us);
        area.draw(&PathElement::new([(x, top), (x, bottom)], GRID))?;
        text(area, label, (x, bottom + 6), 11, &FAINT, HPos::Center)?;
    }
    for (tail, label) in TAILS {
        let y = y_of(tail, top);
        area.draw(&PathElement::new([(LEFT, y), (RIGHT, y)], GRID))?;
        text(area, label, (LEFT - 8, y - 5), 11, &FAINT, HPos::Right)?;
    }
    area.draw(&PathElement::new([(LEFT, bottom), (RIGHT, bottom)], FAINT))?;
    Ok(())
}

/// What a contender's line looks like: a hue for a family, dashes for its
/// second member. The dash and its gap, in pixels.
fn style(contender: &str) -> (ShapeStyle, Option<(i32, i32)>) {
    let (colour, width, dashes) = match contender {
        "idle" => (RGBColor(120, 126, 136), 2, None),
        "awake" => (RGBColor(120, 126, 136), 2, Some((5, 4))),
        "same_runtime" => (RGBColor(190, 52, 48), 2, None),
        "same_runtime_yield" => (RGBColor(190, 52, 48), 2, Some((5, 4))),
        "spawn_blocking_4" => (RGBColor(229, 145, 35), 2, None),
        "spawn_blocking_32" => (RGBColor(229, 145, 35), 2, Some((5, 4))),
        "second_runtime" => (RGBColor(62, 105, 190), 2, None),
        "second_runtime_minus_one" => (RGBColor(62, 105, 190), 2, Some((5, 4))),
        "rayon" => (RGBColor(140, 84, 170), 2, None),
        "twolane_unweighted" => (RGBColor(120, 180, 140), 2, Some((2, 3))),
        "twolane_rayon" => (RGBColor(18, 118, 76), 3, None),
        // twolane_runtime
        _ => (RGBColor(18, 118, 76), 3, Some((7, 4))),
    };
    (colour.stroke_width(width), dashes)
}

fn line(area: &Area, top: i32, contender: &str, latencies: &Histogram<u64>) -> Drawn {
    let all = latencies.len();
    let mut points: Vec<(i32, i32)> = Vec::new();
    let mut answered = 0;
    for value in latencies.iter_recorded() {
        // So many took at least this long; the slowest one counts as well.
        let tail = (all - answered) as f64 / all as f64;
        let (x, y) = (
            x_of(value.value_iterated_to() as f64 / 1e3),
            y_of(tail, top),
        );
        // In steps: nothing was measured between two values. What falls on a
        // pixel that is drawn already would only make the file larger.
        let step = points.last().map(|&(before, _)| (before, y));
        for point in step.into_iter().chain([(x, y)]) {
            if points.last() != Some(&point) {
                points.push(point);
            }
        }
        answered += value.count_since_last_iteration();
    }
    stroke(area, points, contender)
}

fn stroke(area: &Area, points: Vec<(i32, i32)>, contender: &str) -> Drawn {
    let (style, dashes) = style(contender);
    match dashes {
        None => area.draw(&PathElement::new(points, style))?,
        Some((dash, gap)) => {
            let path = DashedPathElement::new(points, dash, gap, style);
            area.draw(&path)?;
        }
    }
    Ok(())
}

fn legend(area: &Area, drawn: &[&str]) -> Drawn {
    let x = RIGHT + 24;
    for (i, contender) in drawn.iter().enumerate() {
        let y = TOP + 8 + 20 * i as i32;
        stroke(area, vec![(x, y), (x + 26, y)], contender)?;
        let title = contender.replace('_', " ");
        text(area, &title, (x + 34, y - 7), 12, &INK, HPos::Left)?;
    }
    Ok(())
}
