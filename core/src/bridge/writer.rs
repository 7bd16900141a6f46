//! [`BridgeWriter`]: the writing end of a bridge, for a task of the I/O lane.

use std::future::Future;

use futures_core::Stream;

use super::buffer::{Bridged, Writer, channel};
use super::pump::Pump;
use super::stream::UNIT;
use crate::metrics::held::Held;

/// The writing end of a bridge, of [`IoHandle::bridge`](crate::io::IoHandle::bridge).
///
/// If it is dropped, or the future of [`forward`](Self::forward) is, its reader gets a
/// [`BridgeError`](crate::io::BridgeError).
#[must_use = "its reader gets an error if it is dropped"]
pub struct BridgeWriter<T, W> {
    writer: Writer<T>,
    size: W,
}

pub(crate) fn bridge<T, W>(held: Held, limit: usize, size: W) -> (BridgeWriter<T, W>, Bridged<T>) {
    let (writer, reader) = channel(held, limit, "I/O", UNIT);
    (BridgeWriter { writer, size }, reader)
}

impl<T, W: Fn(&T) -> usize> BridgeWriter<T, W> {
    /// Names the unit of the sizes in the reader's error: `bytes`.
    pub fn unit(mut self, unit: &'static str) -> Self {
        self.writer.set_unit(unit);
        self
    }

    /// Polls `stream` to its end, and hands its items to the reader while there is room.
    ///
    /// Ends early if the reader was dropped. A panic of the stream reaches the reader as a
    /// [`BridgeError`](crate::io::BridgeError), and goes no further.
    pub fn forward<S>(self, stream: S) -> impl Future<Output = ()> + use<S, T, W>
    where
        S: Stream<Item = T>,
    {
        Pump::new(stream, self.size, self.writer)
    }
}

debug_by_name!(BridgeWriter<T, W>);
