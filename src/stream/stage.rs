//! What runs on one item: the stages of a stream, composed into one type.
//!
//! A stage is a type of its own, not a boxed closure, so that the compiler inlines all
//! stages into the loop of `runner.rs`. With a call by pointer for each item and stage,
//! items of 100 ns took a third longer.

use std::ops::ControlFlow;

/// Whether the stages go on with their item.
pub(super) type Flow = ControlFlow<()>;

/// The stages of an [`OnCpu`](crate::stream::OnCpu). Its methods make them; it can't be
/// implemented outside of this crate.
pub trait Stage<I>: sealed::Sealed + Send + Sync + 'static {
    /// What comes out of the last stage.
    type Output: 'static;

    #[doc(hidden)]
    type State: Send + 'static;

    #[doc(hidden)]
    fn init(&self) -> Self::State;

    #[doc(hidden)]
    fn run<E>(&self, state: &mut Self::State, input: I, emit: &mut E) -> Flow
    where
        E: FnMut(Self::Output) -> Flow;
}

mod sealed {
    #[allow(unnameable_types, reason = "a sealed trait")]
    pub trait Sealed {}
}

/// No stage: the input comes out.
#[derive(Debug)]
pub struct Unchanged;

/// All others: a closure that makes any number of outputs of an item.
pub(super) struct FlatMap<B, N, F> {
    pub(super) before: B,
    /// Makes a worker's state.
    pub(super) init: N,
    pub(super) f: F,
}

impl sealed::Sealed for Unchanged {}
impl<B, N, F> sealed::Sealed for FlatMap<B, N, F> {}

impl<I: 'static> Stage<I> for Unchanged {
    type Output = I;
    type State = ();

    fn init(&self) {}

    fn run<E: FnMut(I) -> Flow>(&self, (): &mut (), input: I, emit: &mut E) -> Flow {
        emit(input)
    }
}

impl<I, B, N, T, F, P> Stage<I> for FlatMap<B, N, F>
where
    B: Stage<I>,
    N: Fn() -> T + Send + Sync + 'static,
    T: Send + 'static,
    F: Fn(&mut T, B::Output) -> P + Send + Sync + 'static,
    P: IntoIterator,
    P::Item: 'static,
{
    type Output = P::Item;
    type State = (B::State, T);

    fn init(&self) -> Self::State {
        (self.before.init(), (self.init)())
    }

    fn run<E: FnMut(P::Item) -> Flow>(
        &self,
        (before, state): &mut Self::State,
        input: I,
        emit: &mut E,
    ) -> Flow {
        let mut f = |item| (self.f)(state, item).into_iter().try_for_each(&mut *emit);
        self.before.run(before, input, &mut f)
    }
}
