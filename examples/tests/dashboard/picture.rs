//! The panels, drawn from what Prometheus has answered.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use crate::panels::Panel;
use crate::prometheus::Series;
use crate::words::{Area, Drawn, FAINT, GRID, INK, text};

const WIDTH: i32 = 980;
const HEIGHT: i32 = 210;
const COLUMNS: i32 = 2;
const TOP: i32 = 40;
const LINES: [RGBColor; 6] = [
    RGBColor(18, 118, 76),
    RGBColor(62, 105, 190),
    RGBColor(229, 145, 35),
    RGBColor(190, 52, 48),
    RGBColor(140, 84, 170),
    RGBColor(120, 126, 136),
];

pub(crate) fn draw(panels: &[(Panel, Vec<Series>)], span: (f64, f64), path: &Path) -> Drawn {
    let rows = (panels.len() as i32 + COLUMNS - 1) / COLUMNS;
    let size = (WIDTH as u32, (TOP + rows * HEIGHT) as u32);
    let area = SVGBackend::new(path, size).into_drawing_area();
    area.fill(&WHITE)?;
    let title = "twolane: the CPU lane";
    text(&area, title, (16, 12), 18, &INK, HPos::Left)?;
    for (i, (panel, series)) in panels.iter().enumerate() {
        let width = WIDTH / COLUMNS;
        let (x, y) = (
            i as i32 % COLUMNS * width,
            TOP + i as i32 / COLUMNS * HEIGHT,
        );
        Plot::new(panel, series, span, (x, y), width).draw(&area)?;
    }
    area.present()?;
    Ok(())
}

struct Plot<'a> {
    panel: &'a Panel,
    series: Vec<&'a Series>,
    span: (f64, f64),
    left: i32,
    right: i32,
    top: i32,
    bottom: i32,
    /// The value at the top, and between two lines of the grid.
    most: f64,
    step: f64,
}

impl<'a> Plot<'a> {
    fn new(
        panel: &'a Panel,
        series: &'a [Series],
        span: (f64, f64),
        (x, y): (i32, i32),
        width: i32,
    ) -> Self {
        let series: Vec<_> = series.iter().filter(|one| !one.points.is_empty()).collect();
        let values = series
            .iter()
            .flat_map(|one| &one.points)
            .map(|(_, value)| *value);
        let most = values.fold(f64::MIN_POSITIVE, f64::max);
        let step = round_up(most / 4.0);
        Self {
            panel,
            series,
            span,
            left: x + 66,
            right: x + width - 16,
            top: y + 24,
            bottom: y + HEIGHT - 46,
            most: (most / step).ceil() * step,
            step,
        }
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        text(
            area,
            &self.panel.title,
            (self.left, self.top - 20),
            13,
            &INK,
            HPos::Left,
        )?;
        let mut value = 0.0;
        while value <= self.most * 1.001 {
            let y = self.y(value);
            area.draw(&PathElement::new([(self.left, y), (self.right, y)], GRID))?;
            let label = with_unit(value, &self.panel.unit);
            text(
                area,
                &label,
                (self.left - 6, y - 5),
                10,
                &FAINT,
                HPos::Right,
            )?;
            value += self.step;
        }
        let (mut x, mut y) = (self.left, self.bottom + 8);
        for (series, colour) in self.series.iter().zip(LINES.iter().cycle()) {
            let points = series.points.iter();
            let points: Vec<_> = points
                .map(|(at, value)| (self.x(*at), self.y(*value)))
                .collect();
            area.draw(&PathElement::new(points, colour.stroke_width(2)))?;
            let width = 22 + 6 * series.legend.len() as i32;
            if x + width > self.right {
                (x, y) = (self.left, y + 14);
            }
            area.draw(&PathElement::new(
                [(x, y + 6), (x + 10, y + 6)],
                colour.stroke_width(3),
            ))?;
            text(area, &series.legend, (x + 14, y), 11, &INK, HPos::Left)?;
            x += width;
        }
        Ok(())
    }

    fn x(&self, at: f64) -> i32 {
        let share = (at - self.span.0) / (self.span.1 - self.span.0);
        self.left + (share * f64::from(self.right - self.left)) as i32
    }

    fn y(&self, value: f64) -> i32 {
        self.bottom - (value / self.most * f64::from(self.bottom - self.top)) as i32
    }
}

/// To 1, 2 or 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step >= value)
        .unwrap_or(value)
}

fn with_unit(value: f64, unit: &str) -> String {
    let short = |value: f64| {
        let text = format!("{value:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match unit {
        "s" if value > 0.0 && value < 0.001 => short(value * 1e6) + " µs",
        "s" if value > 0.0 && value < 1.0 => short(value * 1e3) + " ms",
        "s" => short(value) + " s",
        "percentunit" => short(value * 100.0) + " %",
        "bytes" => short(value / 1e6) + " MB",
        "ops" => short(value) + "/s",
        _ => short(value),
    }
}
