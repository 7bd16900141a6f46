//! The loop in which a worker runs the inputs of a chunk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::vec;

use super::stage::{Flow, Stage};
use crate::admission::DropOnLane;
use crate::lane::Level;
use crate::task::slice::is_slice_over;

/// From which input on nothing is wanted any more.
pub(super) struct Stop {
    at: AtomicU64,
    ordered: bool,
}

impl Stop {
    pub(super) fn new(ordered: bool) -> Self {
        Self {
            at: AtomicU64::new(u64::MAX),
            ordered,
        }
    }

    // Relaxed, here and below: a thread that sees the old value only does work that is
    // not wanted.
    pub(super) fn wants(&self, index: u64) -> bool {
        index < self.at.load(Relaxed)
    }

    /// The input of this index has failed. The consumer still wants what comes before it,
    /// if it takes the outputs in order.
    pub(super) fn failed(&self, index: u64) {
        let from = if self.ordered { index } else { 0 };
        self.at.fetch_min(from, Relaxed);
    }

    pub(super) fn all(&self) {
        self.at.store(0, Relaxed);
    }
}

/// What has been run of a chunk. It is valid after a panic, too.
pub(super) struct Ran<'a, O> {
    pub(super) inputs: usize,
    pub(super) outputs: &'a mut Vec<O>,
    /// How many outputs there were before.
    pub(super) before: usize,
    /// Each input has made one output.
    pub(super) is_one_for_one: bool,
    /// The last output is an error.
    pub(super) is_error: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    SliceOver,
    /// An output is an error, or the rest is not wanted.
    Stopped,
    Panicked,
}

/// The stages with the state of one worker. The trait hides their types.
pub(super) trait Run<I, O>: Send {
    /// Runs inputs, the first of which has the index `first`, in a slice that began at the
    /// tick `slice`.
    fn run(
        &mut self,
        inputs: &mut vec::IntoIter<I>,
        first: u64,
        stop: &Stop,
        slice: u32,
        ran: &mut Ran<'_, O>,
    ) -> End;
}

pub(super) struct Runner<G: Send + 'static, T: Send + 'static, E> {
    stages: Arc<DropOnLane<G>>,
    state: DropOnLane<T>,
    is_error: E,
}

impl<G: Send, T: Send, E> Runner<G, T, E> {
    pub(super) fn new<I>(level: &Level, stages: &Arc<DropOnLane<G>>, is_error: E) -> Self
    where
        G: Stage<I, State = T>,
    {
        Self {
            state: DropOnLane::new(level, stages.init()),
            stages: stages.clone(),
            is_error,
        }
    }
}

impl<I, G, E> Run<I, G::Output> for Runner<G, G::State, E>
where
    G: Stage<I>,
    E: Fn(&G::Output) -> bool + Send,
{
    fn run(
        &mut self,
        inputs: &mut vec::IntoIter<I>,
        first: u64,
        stop: &Stop,
        slice: u32,
        ran: &mut Ran<'_, G::Output>,
    ) -> End {
        while let Some(input) = inputs.next() {
            let index = first + ran.inputs as u64;
            if !stop.wants(index) {
                return End::Stopped;
            }
            ran.inputs += 1;
            let flow = self.stages.run(&mut self.state, input, &mut |output| {
                if !stop.wants(index) {
                    return Flow::Break(());
                }
                ran.is_error = (self.is_error)(&output);
                ran.outputs.push(output);
                if ran.is_error {
                    Flow::Break(())
                } else {
                    Flow::Continue(())
                }
            });
            ran.is_one_for_one &= ran.outputs.len() - ran.before == ran.inputs;
            if flow.is_break() {
                return End::Stopped;
            }
            if is_slice_over(slice) && inputs.len() > 0 {
                return End::SliceOver;
            }
        }
        End::Whole
    }
}
