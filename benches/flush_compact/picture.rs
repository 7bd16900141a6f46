//! The picture: a second of three contenders, a bar for each flush and compaction,
//! coloured by what it did.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use plotters::style::RGBColor;
use twolane_benches::picture::timeline::{GAP, HEADING, ROW, TOP, Timeline};
use twolane_benches::picture::words::Drawn;
use twolane_s3::engine::contender::Contender;
use twolane_s3::engine::lsm::steps::Step;
use twolane_s3::engine::slice::{Operation, Slice};

const PANELS: [Contender; 3] = [
    Contender::OneRuntime,
    Contender::TwoRuntimes,
    Contender::Twolane,
];
const SPAN_MS: f64 = 1_000.0;

const WAITING: RGBColor = RGBColor(199, 70, 62);
const GET: RGBColor = RGBColor(91, 155, 112);
const COMPUTE: RGBColor = RGBColor(110, 91, 167);
const PUT: RGBColor = RGBColor(233, 162, 59);

pub fn draw(slices: &BTreeMap<Contender, Slice>, path: &Path) -> Drawn {
    let panel = |contender| Some(Panel::new(contender, slices.get(&contender)?));
    let panels: Vec<Panel<'_>> = PANELS.into_iter().filter_map(panel).collect();
    let title = "Four flushes each 100 ms, beside four compactions";
    let height = panels.iter().map(Panel::height).sum();
    let timeline = Timeline::new(path, title, height, SPAN_MS)?;
    timeline.legend([
        (&WAITING, "waits"),
        (&COMPUTE, "computes (or waits in between)"),
        (&GET, "gets"),
        (&PUT, "puts"),
    ])?;
    let mut y = TOP;
    for panel in &panels {
        panel.paint(&timeline, y)?;
        y += panel.height();
    }
    timeline.finish(
        y,
        "ms; the colours are as seen by the task: a put that waits for a thread is a long put",
    )
}

struct Panel<'a> {
    contender: Contender,
    slice: &'a Slice,
    flushes: Vec<Vec<&'a Operation>>,
    compactions: Vec<Vec<&'a Operation>>,
}

impl<'a> Panel<'a> {
    fn new(contender: Contender, slice: &'a Slice) -> Self {
        Self {
            contender,
            slice,
            flushes: rows(slice, &slice.flushes),
            compactions: rows(slice, &slice.compactions),
        }
    }

    fn rows_height(&self) -> i32 {
        ROW * (self.flushes.len() + self.compactions.len()) as i32 + 5
    }

    fn height(&self) -> i32 {
        HEADING + self.rows_height() + GAP
    }

    fn paint(&self, timeline: &Timeline<'_>, top: i32) -> Drawn {
        timeline.panel(self.contender.title(), top, self.rows_height())?;
        let flushes = self.flushes.iter().map(|row| ("flush", row));
        let compactions = self.compactions.iter().map(|row| ("compaction", row));
        for (i, (name, row)) in flushes.chain(compactions).enumerate() {
            let below = if name == "compaction" { 5 } else { 0 };
            let y = top + HEADING + ROW * i as i32 + below;
            timeline.name(name, y)?;
            for operation in row {
                self.bars(timeline, operation, y)?;
            }
        }
        Ok(())
    }

    fn bars(&self, timeline: &Timeline<'_>, operation: &Operation, y: i32) -> Drawn {
        let at = |instant| self.slice.ms_from_start(instant).clamp(0.0, SPAN_MS);
        timeline.bar(at(operation.due), at(operation.end), y, &WAITING)?;
        for (step, from, to) in &operation.steps.0 {
            let colour = match step {
                Step::Get => &GET,
                Step::Compute => &COMPUTE,
                Step::Put => &PUT,
            };
            timeline.bar(at(*from), at(*to), y, colour)?;
        }
        Ok(())
    }
}

/// The operations of the second that is shown, in as many rows as it takes for
/// none to lie on another.
fn rows<'a>(slice: &Slice, operations: &'a [Operation]) -> Vec<Vec<&'a Operation>> {
    let shown = slice.start..slice.start + Duration::from_secs_f64(SPAN_MS / 1e3);
    let mut shown: Vec<_> = operations
        .iter()
        .filter(|one| one.due < shown.end && one.end > shown.start)
        .collect();
    shown.sort_by_key(|one| one.due);
    let mut rows: Vec<Vec<&Operation>> = Vec::new();
    for one in shown {
        let free = |row: &&mut Vec<&Operation>| row.last().is_none_or(|last| last.end <= one.due);
        match rows.iter_mut().find(free) {
            Some(row) => row.push(one),
            None => rows.push(vec![one]),
        }
    }
    rows
}
