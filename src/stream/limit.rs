//! What the window of a stream counts: [`ByItems`] or [`ByBytes`].

use std::fmt;

use super::shared::Size;

/// The window of an [`OnCpu`](crate::stream::OnCpu) counts items.
///
/// Each stream begins with it. It is the default, so a type seldom names it.
///
/// # Examples
///
/// ```
/// use futures::Stream;
/// use twolane::stream::{ByItems, OnCpu};
/// use twolane::{CpuStreamExt, Handle};
///
/// // Not started yet: the caller adds stages, and chooses the window.
/// fn lines<S: Stream<Item = String>>(
///     cpu: &Handle,
///     source: S,
/// ) -> OnCpu<S, twolane::stream::Unchanged, ByItems> {
///     source.on_cpu(cpu)
/// }
/// ```
#[derive(Debug)]
pub struct ByItems(pub(super) ());

/// The window of an [`OnCpu`](crate::stream::OnCpu) counts items and bytes: those of inputs `I` and
/// outputs `O`.
///
/// After [`OnCpu::max_bytes`](crate::stream::OnCpu::max_bytes) no stage can be added, since it
/// would change the output.
///
/// # Examples
///
/// ```
/// use twolane::stream::{ByBytes, OnCpu, Unchanged};
///
/// fn at_most_a_mib<S>(pages: OnCpu<S, Unchanged>) -> OnCpu<S, Unchanged, ByBytes<Vec<u8>, Vec<u8>>>
/// where
///     S: futures::Stream<Item = Vec<u8>>,
/// {
///     pages.max_bytes(1 << 20, Vec::len, Vec::len)
/// }
/// ```
pub struct ByBytes<I, O> {
    pub(super) limit: usize,
    pub(super) input: Size<I>,
    pub(super) output: Size<O>,
}

impl<I, O> fmt::Debug for ByBytes<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByBytes")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// What the window of an [`OnCpu`](crate::stream::OnCpu) counts: [`ByItems`] or [`ByBytes`]. It
/// can't be implemented outside of this crate.
///
/// # Examples
///
/// A function that starts a stream, whichever of the two its window counts:
///
/// ```
/// use futures::Stream;
/// use twolane::JoinError;
/// use twolane::stream::{Limit, OnCpu, Stage};
///
/// fn start<S, G, L>(stream: OnCpu<S, G, L>) -> impl Stream<Item = Result<G::Output, JoinError>>
/// where
///     S: Stream<Item: Send> + Send + 'static,
///     G: Stage<S::Item, Output: Send>,
///     L: Limit<S::Item, G::Output>,
/// {
///     stream.batch_time(std::time::Duration::from_millis(1)).buffered(64)
/// }
/// ```
pub trait Limit<I, O>: sealed::Sealed {
    #[doc(hidden)]
    fn into_bytes(self) -> Option<ByBytes<I, O>>;
}

mod sealed {
    #[allow(unnameable_types, reason = "a sealed trait")]
    pub trait Sealed {}
}

impl sealed::Sealed for ByItems {}
impl<I, O> sealed::Sealed for ByBytes<I, O> {}

impl<I, O> Limit<I, O> for ByItems {
    fn into_bytes(self) -> Option<ByBytes<I, O>> {
        None
    }
}

impl<I, O> Limit<I, O> for ByBytes<I, O> {
    fn into_bytes(self) -> Option<ByBytes<I, O>> {
        Some(self)
    }
}
