//! The panels, drawn from what Prometheus has answered.

use std::error::Error;
use std::ops::Range;
use std::path::Path;

use plotters::prelude::*;

pub(crate) struct Series {
    pub(crate) legend: String,
    /// The time in seconds, and the value.
    pub(crate) points: Vec<(f64, f64)>,
}

pub(crate) struct Panel<'a> {
    pub(crate) title: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) series: Vec<Series>,
}

const FONT: &str = "sans-serif";
const COLUMNS: usize = 2;
/// Below a panel, for the names of its lines.
const LEGEND: i32 = 36;
const LINES: [RGBColor; 6] = [
    RGBColor(18, 118, 76),
    RGBColor(62, 105, 190),
    RGBColor(229, 145, 35),
    RGBColor(190, 52, 48),
    RGBColor(140, 84, 170),
    RGBColor(120, 126, 136),
];

pub(crate) fn draw(
    panels: &[&Panel<'_>],
    span: Range<f64>,
    path: &Path,
) -> Result<(), Box<dyn Error>> {
    let rows = panels.len().div_ceil(COLUMNS);
    let size = (980, 40 + 210 * rows as u32);
    let area = SVGBackend::new(path, size).into_drawing_area();
    area.fill(&WHITE)?;
    let area = area.titled("twolane: the CPU lane", (FONT, 18))?;
    for (cell, panel) in area.split_evenly((rows, COLUMNS)).iter().zip(panels) {
        let (width, height) = cell.dim_in_pixel();
        let (plot, below) = cell.split_vertically(height as i32 - LEGEND);
        let values = panel.series.iter().flat_map(|one| &one.points);
        let most = values
            .map(|(_, value)| *value)
            .fold(f64::MIN_POSITIVE, f64::max);
        let mut chart = ChartBuilder::on(&plot)
            .margin(6)
            .margin_right(16)
            .caption(panel.title, (FONT, 13))
            .y_label_area_size(60)
            .build_cartesian_2d(span.clone(), 0.0..most * 1.05)?;
        chart
            .configure_mesh()
            .disable_x_axis()
            .disable_x_mesh()
            .y_labels(5)
            .max_light_lines(1)
            .y_label_formatter(&|value| with_unit(*value, panel.unit))
            .draw()?;
        let filled = panel.series.iter().filter(|one| !one.points.is_empty());
        let (mut x, mut y) = (66, 0);
        for (series, colour) in filled.zip(LINES.iter().cycle()) {
            let points = series.points.iter().copied();
            chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
            let name = 22 + 6 * series.legend.len() as i32;
            if x + name > width as i32 {
                (x, y) = (66, y + 14);
            }
            let line = [(x, y + 6), (x + 10, y + 6)];
            below.draw(&PathElement::new(line, colour.stroke_width(3)))?;
            below.draw(&Text::new(&*series.legend, (x + 14, y), (FONT, 11)))?;
            x += name;
        }
    }
    area.present()?;
    Ok(())
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
        "ops" => short(value) + "/s",
        _ => short(value),
    }
}
