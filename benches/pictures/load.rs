//! `docs/load.svg` of the README: the p99 of `/health` over the load that is offered, from
//! `docs/measured/max_wait.json`.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

use crate::shared::{
    BLOCKING, BLOCKING_WITH_CARE, Data, Drawn, IN_PLACE, Line, TWOLANE, chart, lines, picture,
    plain, time,
};

const SIDES: [Line; 4] = [
    ("in the handler", "in the handler", IN_PLACE),
    ("spawn_blocking", "spawn_blocking", BLOCKING),
    (
        "semaphores",
        "spawn_blocking, two semaphores",
        BLOCKING_WITH_CARE,
    ),
    ("max_wait", "twolane, max_wait of 500 ms", TWOLANE),
];

pub fn draw(docs: &Path) -> Drawn {
    let data = Data::read(docs, "max_wait")?;
    let title = "/health of a service whose requests compute for 20 ms: p99, two cores";
    picture(380, title, |root| {
        let mut chart = chart(root).build_cartesian_2d(0.4..2.05, (0.1..20_000.0).log_scale())?;
        plain(&mut chart.configure_mesh())
            .disable_x_mesh()
            .x_desc("requests, in parts of what the service can serve")
            .x_labels(7)
            .x_label_formatter(&|load| format!("{load:.1}"))
            .y_labels(6)
            .y_label_formatter(&|ms| time(ms * 1e6))
            .draw()?;
        lines(root, &mut chart, &SIDES, |side| p99s(&data, side))
    })
}

/// By load, in milliseconds.
fn p99s(data: &Data, side: &str) -> Result<Vec<(f64, f64)>, Box<dyn Error>> {
    const P99: &str = "health_p99_of_all_rounds";
    let mut found = Vec::new();
    for contender in data.contenders(P99) {
        let load = contender.strip_prefix("load ");
        let load = load.and_then(|it| it.strip_suffix(side)?.strip_suffix(", "));
        if let Some(load) = load {
            found.push((load.parse()?, data.median(contender, P99)?));
        }
    }
    found.sort_by(|one: &(f64, f64), other| one.0.total_cmp(&other.0));
    Ok(found)
}
