//! Streams across the bridge, in either direction.

use futures_core::Stream;

use super::buffer::{Bridged, channel};
use super::error::CPU;
use super::pump::Pump;
use super::spawn_io::spawn_io;
use crate::admission::Permit;
use crate::lane::Level;

/// The unit of a stream, as errors name it: the `size` of the caller defines it.
pub(super) const UNIT: &str = "units of `size`";

/// `Handle::stream_from_io`.
#[track_caller]
pub(crate) fn from_io<S, W>(level: &Level, stream: S, limit: usize, size: W) -> Bridged<S::Item>
where
    S: Stream + Send + 'static,
    S::Item: Send + 'static,
    W: Fn(&S::Item) -> usize + Send + 'static,
{
    let (writer, reader) = channel(level.held(), limit, "I/O", UNIT);
    let pump = Pump::new(stream, size, writer);
    match level.lane().close_reason() {
        Some(cause) => pump.refuse(cause.into()),
        None => spawn_io(level, pump).detach_quietly(),
    }
    reader
}

/// `Handle::stream_from_cpu`.
#[track_caller]
pub(crate) fn from_cpu<S, W>(level: &Level, stream: S, limit: usize, size: W) -> Bridged<S::Item>
where
    S: Stream + Send + 'static,
    S::Item: Send + 'static,
    W: Fn(&S::Item) -> usize + Send + 'static,
{
    let (writer, reader) = channel(level.held(), limit, CPU, UNIT);
    let pump = Pump::new(stream, size, writer).on_cpu(level);
    match Permit::try_new(level, None) {
        Ok(permit) => permit.spawn(pump).detach_quietly(),
        Err(cause) => pump.refuse(cause),
    }
    reader
}
