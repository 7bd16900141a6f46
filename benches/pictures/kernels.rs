//! `docs/contributors/kernels.svg` of `docs/contributors/kernels.md`: the p99 of a woken thread's wait by kernel
//! and mode, from `docs/measured/kernels.json`.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use crate::shared::{
    Data, Drawn, INK, PALE, SECOND_RUNTIME as LAZY, TWOLANE, beside, picture, plain, time,
};

const LEGEND: [(&str, RGBColor, i32); 3] = [
    ("preempts at once", PALE, 130),
    ("lazy", LAZY, 290),
    ("lazy, the process ticks", TWOLANE, 366),
];

/// The heights of a bar and of a kernel's rest.
const BAR: f64 = 15.0;
const GAP: f64 = 9.0;
/// Where the bars begin, in µs.
const FROM: f64 = 10.0;

pub fn draw(docs: &Path) -> Drawn {
    let data = Data::read(docs, "kernels")?;
    let runs = |contender: &str| data.medians(contender, "p99").collect::<Vec<f64>>();
    let mut kernels = data.contenders("p99");
    kernels.retain(|it| !it.contains(','));
    let groups = kernels.into_iter().map(|kernel| {
        if kernel.ends_with("lazy") {
            let ticked = runs(&format!("{kernel}, with ticks"));
            (kernel, vec![(LAZY, runs(kernel)), (TWOLANE, ticked)])
        } else {
            (kernel, vec![(PALE, runs(kernel))])
        }
    });
    let groups: Vec<_> = groups.collect();
    let bars: usize = groups.iter().map(|(_, bars)| bars.len()).sum();
    let height = BAR * bars as f64 + GAP * groups.len() as f64;

    let title = "p99 of a woken thread's wait beside jobs of 5 ms; a dot for each run";
    picture(height as u32 + 118, title, |root| {
        let mut chart = ChartBuilder::on(root)
            .margin_top(68)
            .margin_right(24)
            .margin_left(8)
            .x_label_area_size(50)
            .y_label_area_size(122)
            .build_cartesian_2d((FROM..6_000.0).log_scale(), -height..0.0)?;
        plain(&mut chart.configure_mesh())
            .disable_y_mesh()
            .y_labels(0)
            .x_desc("the wait, in an emulator")
            .x_labels(3)
            .x_label_formatter(&|us| time(us * 1e3))
            .draw()?;
        for (words, colour, x) in LEGEND {
            root.draw(&Rectangle::new([(x, 42), (x + 12, 54)], colour.filled()))?;
            root.draw_text(words, &beside(HPos::Left), (x + 18, 48))?;
        }
        let mut top = -GAP / 2.0;
        for (kernel, bars) in &groups {
            let middle = top - BAR * bars.len() as f64 / 2.0;
            let (x, y) = chart.backend_coord(&(FROM, middle));
            root.draw_text(kernel, &beside(HPos::Right), (x - 10, y))?;
            for (colour, runs) in bars {
                let longest = runs.iter().copied().fold(FROM, f64::max);
                let bar = [(FROM, top), (longest, top - BAR)];
                chart.draw_series([Rectangle::new(bar, colour.filled())])?;
                let dots = runs.iter().map(|run| (*run, top - BAR / 2.0));
                chart.draw_series(dots.map(|at| Circle::new(at, 3, INK.filled())))?;
                top -= BAR;
            }
            top -= GAP;
        }
        Ok(())
    })
}
