//! The loop in which a worker runs the inputs of a chunk.

use std::iter::Take;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::vec;

use super::drop_on_lane::DropOnLane;
use super::shared::Piece;
use super::stage::{Flow, Stage};
use twolane_core::Handle;
use twolane_core::is_yield_due;

/// From which input on nothing is wanted any more.
pub(super) struct Stop(AtomicU64);

impl Stop {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }

    // Relaxed, here and below: a thread that sees the old value only does work that is
    // not wanted.
    pub(super) fn wants(&self, index: u64) -> bool {
        index < self.0.load(Relaxed)
    }

    /// The input of this index has panicked: its worker has it, and the consumer still wants what
    /// comes before it.
    pub(super) fn failed(&self, index: u64) {
        self.0.fetch_min(index + 1, Relaxed);
    }

    pub(super) fn all(&self) {
        self.0.store(0, Relaxed);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    SliceOver,
    /// The rest is not wanted.
    Stopped,
    Panicked,
}

pub(super) type Inputs<'a, I> = Take<&'a mut vec::IntoIter<I>>;

/// The stages with the state of one worker. The trait hides their types.
pub(super) trait RunChunk<I, O>: Send {
    /// Runs inputs until none is left, or until the slice is over, and adds them and their
    /// outputs to `made`, which is valid after a panic, too.
    fn run(&mut self, inputs: &mut Inputs<'_, I>, stop: &Stop, made: &mut Piece<O>) -> End;
}

pub(super) struct Runner<G: Send + 'static, T: Send + 'static> {
    stages: Arc<DropOnLane<G>>,
    state: DropOnLane<T>,
}

impl<G: Send, T: Send> Runner<G, T> {
    pub(super) fn new<I>(handle: &Handle, stages: &Arc<DropOnLane<G>>) -> Self
    where
        G: Stage<I, State = T>,
    {
        Self {
            state: DropOnLane::new(handle, stages.init()),
            stages: stages.clone(),
        }
    }
}

impl<I, G: Stage<I>> RunChunk<I, G::Output> for Runner<G, G::State> {
    fn run(&mut self, inputs: &mut Inputs<'_, I>, stop: &Stop, made: &mut Piece<G::Output>) -> End {
        for input in inputs {
            let index = made.end();
            if !stop.wants(index) {
                return End::Stopped;
            }
            made.inputs += 1;
            let flow = self.stages.run(&mut self.state, input, &mut |output| {
                if !stop.wants(index) {
                    return Flow::Break(());
                }
                made.outputs.push(output);
                Flow::Continue(())
            });
            made.is_one_for_one &= made.outputs.len() == made.inputs;
            if flow.is_break() {
                return End::Stopped;
            }
            if is_yield_due() {
                return End::SliceOver;
            }
        }
        End::Whole
    }
}
