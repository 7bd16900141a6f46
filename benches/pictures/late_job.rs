//! `docs/late_job.svg` of `docs/late_job.md`: the latency of small jobs by when they come, while
//! long ones are queued, from `docs/measured/late_job.json`.

use std::path::Path;

use plotters::prelude::*;

use crate::shared::{
    Data, Drawn, Line, RAYON, SECOND_RUNTIME, TWOLANE, TWOLANE_OTHERWISE, chart, lines, picture,
    plain, time,
};

const WAYS: [Line; 4] = [
    ("second runtime", "a second runtime", SECOND_RUNTIME),
    (
        "twolane, all Normal",
        "twolane, all at Normal",
        TWOLANE_OTHERWISE,
    ),
    (
        "twolane, small ones High",
        "twolane, small ones at High",
        TWOLANE,
    ),
    (
        "two rayon pools, niced",
        "two rayon pools, nice 8, 16",
        RAYON,
    ),
];

/// Seconds: of 200 small jobs one comes each 5 ms.
const TENTH: f64 = 0.1;

pub fn draw(docs: &Path) -> Drawn {
    let data = Data::read(docs, "late_job")?;
    let points = |way: &str| {
        let tenth = |nth| {
            let ms = data.median(way, &format!("late_tenth_{nth}"))?;
            Ok(((f64::from(nth) + 0.5) * TENTH, ms))
        };
        (0..10).map(tenth).collect()
    };
    let title =
        "Latency of small jobs behind 560 queued long ones, two cores: median of each tenth";
    picture(380, title, |root| {
        let mut chart =
            chart(root).build_cartesian_2d(0.0..10.0 * TENTH, (0.03..10_000.0).log_scale())?;
        plain(&mut chart.configure_mesh())
            .disable_x_mesh()
            .x_desc("when the small job came, s after the first")
            .x_labels(6)
            .x_label_formatter(&|s| format!("{s:.1}"))
            .y_labels(6)
            .y_label_formatter(&|ms| time(ms * 1e6))
            .draw()?;
        lines(root, &mut chart, &WAYS, points)
    })
}
