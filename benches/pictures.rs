//! Draws the picture of the README from `docs/measured`.
//!
//! ```text
//! cargo bench -p twolane-benches --bench pictures            # writes docs/load.svg
//! cargo bench -p twolane-benches --bench pictures -- --test  # fails if it is not what the data gives
//! ```

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde_json::Value;

const INK: RGBColor = RGBColor(38, 43, 51);
const GRID: RGBColor = RGBColor(222, 226, 231);

fn main() -> Result<(), Box<dyn Error>> {
    let checks = env::args().any(|argument| argument == "--test");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let (path, drawn) = (docs.join("load.svg"), load(&docs)?);
    if !checks {
        fs::write(&path, drawn)?;
    } else if fs::read_to_string(&path)? != drawn {
        return Err("docs/load.svg is not what docs/measured gives: draw it anew".into());
    }
    Ok(())
}

/// The p99 of `/health` over the load that is offered.
fn load(docs: &Path) -> Result<String, Box<dyn Error>> {
    // And how far its label is from its last point: two end at the same one.
    const SIDES: [(&str, &str, RGBColor, i32); 4] = [
        (
            "in the handler",
            "in the handler",
            RGBColor(199, 70, 62),
            10,
        ),
        (
            "spawn_blocking",
            "spawn_blocking",
            RGBColor(203, 128, 22),
            -8,
        ),
        (
            "semaphores",
            "spawn_blocking, two semaphores",
            RGBColor(76, 120, 168),
            0,
        ),
        (
            "max_wait",
            "twolane, max_wait of 500 ms",
            RGBColor(58, 128, 84),
            0,
        ),
    ];
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (760, 380)).into_drawing_area();
        root.fill(&WHITE)?;
        let text = |size: i32| ("sans-serif", size).into_font().color(&INK);
        let title = "/health of a service whose requests compute for 20 ms: p99, two cores";
        root.draw_text(title, &text(16), (16, 12))?;
        let mut chart = ChartBuilder::on(&root)
            .margin_top(44)
            .margin_right(222)
            .margin_left(8)
            .margin_bottom(8)
            .x_label_area_size(46)
            .y_label_area_size(64)
            .build_cartesian_2d(0.4..2.05, (0.1..20_000.0).log_scale())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(INK)
            .label_style(text(13))
            .x_desc("requests, in parts of what the service can serve")
            .x_labels(7)
            .x_label_formatter(&|load| format!("{load:.1}"))
            .y_labels(6)
            .y_label_formatter(&|ms| match *ms {
                ms if ms < 1.0 => format!("{ms:.1} ms"),
                ms if ms < 1_000.0 => format!("{ms:.0} ms"),
                ms => format!("{:.0} s", ms / 1_000.0),
            })
            .draw()?;
        for (side, label, colour, down) in SIDES {
            let points = p99s(docs, side)?;
            chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(3)))?;
            let dots = points.iter().map(|at| Circle::new(*at, 4, colour.filled()));
            chart.draw_series(dots)?;
            let last = *points.last().ok_or("there is no figure of a load")?;
            let (x, y) = chart.backend_coord(&last);
            let style = text(13)
                .color(&colour)
                .pos(Pos::new(HPos::Left, VPos::Center));
            root.draw_text(label, &style, (x + 10, y + down))?;
        }
        root.present()?;
    }
    Ok(svg)
}

/// By load, in milliseconds.
fn p99s(docs: &Path, side: &str) -> Result<Vec<(f64, f64)>, Box<dyn Error>> {
    let path: PathBuf = docs.join("measured/max_wait.json");
    let data: Value = serde_json::from_str(&fs::read_to_string(path)?)?;
    let records = data["records"].as_array().ok_or("there is no record")?;
    let rows = records
        .iter()
        .filter_map(|record| record["rows"].as_array());
    let mut found = Vec::new();
    for row in rows.flatten() {
        let contender = row["contender"].as_str().unwrap_or_default();
        let load = contender
            .strip_prefix("load ")
            .and_then(|it| it.split_once(", "));
        let Some((load, _)) = load.filter(|(_, other)| *other == side) else {
            continue;
        };
        if row["measure"] == "health_p99_of_all_rounds" {
            found.push((load.parse()?, row["median"].as_f64().ok_or("no median")?));
        }
    }
    found.sort_by(|one: &(f64, f64), other| one.0.total_cmp(&other.0));
    Ok(found)
}
