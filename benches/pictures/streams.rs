//! `docs/streams.svg` of `docs/streams.md`: throughput by what an item takes, a plain loop being
//! 1, from `docs/measured/streams.json`.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use crate::shared::{
    BLOCKING, BLOCKING_WITH_CARE, Data, Drawn, INK, Line, RAYON, TWOLANE, beside, chart, lines,
    picture, plain, time,
};

const WAYS: [Line; 4] = [
    ("par_iter", "par_iter over a Vec", RAYON),
    ("twolane, ordered", "on_cpu, buffered", TWOLANE),
    (
        "chunks, spawn_blocking, buffered",
        "spawn_blocking, a job a chunk",
        BLOCKING_WITH_CARE,
    ),
    (
        "spawn_blocking, buffered",
        "spawn_blocking, a job an item",
        BLOCKING,
    ),
];

/// Items by name and nanoseconds.
const ITEMS: [(&str, f64); 3] = [("100 ns", 1e2), ("10 µs", 1e4), ("1 ms", 1e6)];

/// `docs/cost.md` has the reason.
const WORTH_A_JOB: f64 = 1e5;

pub fn draw(docs: &Path) -> Drawn {
    let data = Data::read(docs, "streams")?;
    let rate = |item: &str, way: &str| data.median(&format!("{item}/{way}"), "items_per_s");
    let points = |way: &str| {
        let over = |(item, ns)| Ok((ns, rate(item, way)? / rate(item, "plain loop")?));
        ITEMS.into_iter().map(over).collect()
    };
    let title = "Throughput of a stream on two cores, a plain loop being 1";
    picture(360, title, |root| {
        let mut chart = chart(root).build_cartesian_2d((60.0..1.4e6).log_scale(), 0.0..2.1)?;
        plain(&mut chart.configure_mesh())
            .disable_x_mesh()
            .x_desc("an item takes")
            .x_labels(5)
            .x_label_formatter(&|ns| time(*ns))
            .y_labels(5)
            .y_label_formatter(&|over| format!("{over:.1}"))
            .draw()?;
        let mark = [(WORTH_A_JOB, 0.0), (WORTH_A_JOB, 2.1)];
        chart.draw_series(DashedLineSeries::new(mark, 5, 4, INK.into()))?;
        for (words, height) in [("from here on a job", 0.85), ("for each item is fine", 0.7)] {
            let (x, y) = chart.backend_coord(&(WORTH_A_JOB, height));
            root.draw_text(words, &beside(HPos::Left), (x + 8, y))?;
        }
        lines(root, &mut chart, &WAYS, points)
    })
}
