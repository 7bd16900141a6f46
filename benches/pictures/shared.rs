//! What the pictures share: rows of `docs/measured`, colours, words, axes and lines.

use std::error::Error;
use std::fs;
use std::path::Path;

use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde::Deserialize;

pub type Done = Result<(), Box<dyn Error>>;
/// An SVG.
pub type Drawn = Result<String, Box<dyn Error>>;
pub type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub type Chart<'a, 'b, X, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>;

pub const INK: RGBColor = RGBColor(38, 43, 51);
pub const GRID: RGBColor = RGBColor(222, 226, 231);
pub const PALE: RGBColor = RGBColor(176, 183, 193);

pub const IN_PLACE: RGBColor = RGBColor(199, 70, 62);
pub const BLOCKING: RGBColor = RGBColor(203, 128, 22);
/// Its threads, with more care.
pub const BLOCKING_WITH_CARE: RGBColor = RGBColor(76, 120, 168);
pub const TWOLANE: RGBColor = RGBColor(58, 128, 84);
pub const TWOLANE_OTHERWISE: RGBColor = RGBColor(118, 140, 26);
pub const RAYON: RGBColor = RGBColor(126, 87, 160);
pub const SECOND_RUNTIME: RGBColor = RGBColor(112, 120, 132);

/// A bench's rows in `docs/measured`, those that were imported last first.
pub struct Data {
    bench: &'static str,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct File {
    records: Vec<Record>,
}

#[derive(Deserialize)]
struct Record {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    contender: String,
    measure: String,
    median: Option<f64>,
}

impl Data {
    pub fn read(docs: &Path, bench: &'static str) -> Result<Self, Box<dyn Error>> {
        let path = docs.join(format!("measured/{bench}.json"));
        let file: File = serde_json::from_str(&fs::read_to_string(path)?)?;
        let rows = file.records.into_iter().flat_map(|record| record.rows);
        let rows = rows.collect();
        Ok(Self { bench, rows })
    }

    /// All that have this measure.
    pub fn contenders(&self, measure: &str) -> Vec<&str> {
        let mut found = Vec::new();
        for row in self.rows.iter().filter(|row| row.measure == measure) {
            if !found.contains(&row.contender.as_str()) {
                found.push(&row.contender);
            }
        }
        found
    }

    /// One of each run.
    pub fn medians(&self, contender: &str, measure: &str) -> impl Iterator<Item = f64> {
        let is = move |row: &&Row| row.contender == contender && row.measure == measure;
        self.rows.iter().filter(is).filter_map(|row| row.median)
    }

    /// That of the last run.
    pub fn median(&self, contender: &str, measure: &str) -> Result<f64, String> {
        let missing = || {
            let bench = self.bench;
            format!("docs/measured/{bench}.json has no {measure} of `{contender}`: import a run")
        };
        self.medians(contender, measure).next().ok_or_else(missing)
    }
}

/// A whole picture: its title, and what `fill` draws below.
pub fn picture(height: u32, title: &str, fill: impl FnOnce(&Canvas<'_>) -> Done) -> Drawn {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (760, height)).into_drawing_area();
        root.fill(&WHITE)?;
        root.draw_text(title, &text(15), (16, 12))?;
        fill(&root)?;
        root.present()?;
    }
    Ok(svg)
}

/// Words that are so many pixels high.
pub fn text(pixels: u32) -> TextStyle<'static> {
    // The backend divides by as much.
    let size = f64::from(pixels) * 1.24;
    ("sans-serif", size).into_font().color(&INK)
}

/// Words beside a point, on its left or right side, as tall as those of the axes.
pub fn beside(side: HPos) -> TextStyle<'static> {
    text(13).pos(Pos::new(side, VPos::Center))
}

/// `1 µs`, `10 ms` and the like.
pub fn time(ns: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    let unit = units.into_iter().find(|(unit, _)| ns > unit * 0.99);
    let (unit, name) = unit.unwrap_or((1.0, "ns"));
    format!("{:.0} {name}", ns / unit)
}

/// Has room for the title, and on the right for the words of the lines.
pub fn chart<'a, 'b>(root: &'a Canvas<'b>) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut chart = ChartBuilder::on(root);
    chart
        .margin_top(48)
        .margin_right(232)
        .margin_left(8)
        .margin_bottom(8)
        .x_label_area_size(50)
        .y_label_area_size(68);
    chart
}

pub fn plain<'a, 'b, 'c, X, Y, DB>(
    mesh: &'c mut MeshStyle<'a, 'b, X, Y, DB>,
) -> &'c mut MeshStyle<'a, 'b, X, Y, DB>
where
    X: Ranged + ValueFormatter<X::ValueType>,
    Y: Ranged + ValueFormatter<Y::ValueType>,
    DB: DrawingBackend,
{
    mesh.light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(text(13))
}

/// A line: how the data names it, the words at its end, and its colour.
pub type Line = (&'static str, &'static str, RGBColor);

type Points = Vec<(f64, f64)>;

pub fn lines<X, Y>(
    root: &Canvas<'_>,
    chart: &mut Chart<'_, '_, X, Y>,
    lines: &[Line],
    points: impl Fn(&str) -> Result<Points, Box<dyn Error>>,
) -> Done
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    let mut ends = Vec::new();
    for (name, words, colour) in lines {
        let points = points(name)?;
        let last = points.last().ok_or("there is no figure of a line")?;
        ends.push((chart.backend_coord(last), words, colour));
        chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(3)))?;
        let dots = points.iter().map(|at| Circle::new(*at, 4, colour.filled()));
        chart.draw_series(dots)?;
    }
    ends.sort_by_key(|((_, y), ..)| *y);
    let mut free = 0;
    for ((x, y), words, colour) in ends {
        let y = y.max(free);
        root.draw_text(words, &beside(HPos::Left).color(colour), (x + 10, y))?;
        free = y + 19;
    }
    Ok(())
}
