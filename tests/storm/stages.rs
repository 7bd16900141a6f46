//! What the streams compute.

use futures::{Stream, StreamExt};
use twolane::JoinError;
use twolane::stream::{OnCpu, Unchanged};

use crate::streams::{Failure, Items, Plan, Stages};
use crate::surroundings::{Item, Live};
use crate::watchdog::Planned;

/// Ends the stages in each of the ways there are.
macro_rules! ends {
    ($plan:expr, $stages:expr, $size:expr) => {{
        let window = $plan.window;
        let stages = $stages;
        match ($plan.bytes, $plan.ordered) {
            (None, true) => stages.buffered(window).boxed(),
            (None, false) => stages.buffer_unordered(window).boxed(),
            (Some(limit), ordered) => {
                let stages = stages.max_bytes(limit, |item| item.value as usize % 50, $size);
                match ordered {
                    true => stages.buffered(window).boxed(),
                    false => stages.buffer_unordered(window).boxed(),
                }
            }
        }
    }};
}

impl Plan {
    pub(super) fn stages<S>(&self, source: OnCpu<S, Unchanged>, live: &Live) -> Items
    where
        S: Stream<Item = Item> + Send + 'static,
    {
        let plan = self.clone();
        let work = {
            let (id, panic_at, captured) = (self.id, self.panic_at, live.item(0));
            move |mut item: Item| {
                let _ = &captured;
                if panic_at == Some(item.value) {
                    std::panic::panic_any(Planned(id));
                }
                item.value *= 4;
                item
            }
        };
        let source = source.batch_time(self.batch);
        let many = {
            let live = live.clone();
            move |item: Item| {
                let outputs = plan.outputs_of(item.value / 4);
                let live = live.clone();
                outputs.into_iter().map(move |output| live.item(output))
            }
        };
        let size = |item: &Item| item.value as usize % 13;
        let join = |output: Result<Item, JoinError>| output.map_err(Failure::Join);
        match self.stages {
            Stages::Map => {
                let outputs = ends!(self, source.map(work), size);
                outputs.map(join).boxed()
            }
            Stages::MapInit => {
                let live = live.clone();
                let work = move |state: &mut Item, item| {
                    state.value += 1;
                    work(item)
                };
                let stages = source.map_init(move || live.item(0), work);
                let outputs = ends!(self, stages, size);
                outputs.map(join).boxed()
            }
            Stages::FlatMap => {
                let stages = source.map(work).flat_map(many);
                let outputs = ends!(self, stages, size);
                outputs.map(join).boxed()
            }
            Stages::Fallible => {
                let error_at = self.error_at();
                let many = move |item: Item| match error_at == Some(item.value / 4) {
                    true => vec![Err(Failure::Planned(item.value / 4))],
                    false => many(item).map(Ok).collect(),
                };
                let stages = source.map(work).flat_map(many);
                let size = |output: &Result<Item, Failure>| match output {
                    Ok(item) => item.value as usize % 13,
                    Err(_) => 1,
                };
                let outputs = ends!(self, stages, size);
                outputs.map(|output| output?).boxed()
            }
        }
    }
}
