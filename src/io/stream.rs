//! Streams across the bridge, in either direction.

use futures_core::Stream;

use super::bridge::{Bridged, channel};
use super::pump::Pump;
use crate::handle::Handle;

/// The unit of what is sent: the caller's own.
const WEIGHED: &str = "units of `weigh`";

impl Handle {
    /// Polls `stream` on the I/O lane, and gives its items here, or on
    /// whatever thread reads them.
    ///
    /// The I/O lane reads ahead while less than `limit` is buffered, `weigh`
    /// saying what an item counts (bytes, say); so at most `limit` and one
    /// item more are held. With a limit of 0 one item at a time goes across;
    /// an item counts 1 at least. Dropping the result drops the
    /// stream over there.
    ///
    /// # Errors
    /// None here. The items are `Result`s; if the I/O lane stops or the stream
    /// panics before its end, the last one is a
    /// [`BridgeError`](crate::BridgeError).
    ///
    /// # Cost
    /// A task on the I/O lane, and a wake-up of the reader for each item that
    /// it waits for.
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use futures::{StreamExt, TryStreamExt};
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let lines = futures::stream::iter(["one", "two"]);
    /// let bridged = cpu.handle().stream_from_io(lines, 1 << 20, |line| line.len());
    /// let read: Vec<_> = cpu.spawn(bridged.try_collect()).await.unwrap().unwrap();
    /// assert_eq!(read, ["one", "two"]);
    /// # }
    /// ```
    pub fn stream_from_io<S, W>(&self, stream: S, limit: usize, weigh: W) -> Bridged<S::Item>
    where
        S: Stream + Send + 'static,
        S::Item: Send + 'static,
        W: Fn(&S::Item) -> usize + Send + 'static,
    {
        let (writer, reader) = channel(limit, "I/O", WEIGHED);
        self.pump_on_io(Pump::new(stream, weigh, writer));
        reader
    }

    /// As [`stream_from_io`](Self::stream_from_io) the other way round: polls
    /// `stream` on the CPU lane.
    ///
    /// For what computes its items and is read by I/O: a request body that is
    /// encoded on the fly, a response that is rendered.
    ///
    /// # Errors
    /// As [`stream_from_io`](Self::stream_from_io); and it is refused where the
    /// priority's queue has a [limit](crate::Builder::queue_limit) and is full.
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use futures::{StreamExt, TryStreamExt};
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let squares = futures::stream::iter(1..=3_u64).map(|n| n * n); // computed over there
    /// let bridged = cpu.handle().stream_from_cpu(squares, 1024, |_| 8);
    /// assert_eq!(bridged.try_collect::<Vec<_>>().await.unwrap(), [1, 4, 9]);
    /// # }
    /// ```
    pub fn stream_from_cpu<S, W>(&self, stream: S, limit: usize, weigh: W) -> Bridged<S::Item>
    where
        S: Stream + Send + 'static,
        S::Item: Send + 'static,
        W: Fn(&S::Item) -> usize + Send + 'static,
    {
        let (writer, reader) = channel(limit, "CPU", WEIGHED);
        let pump = Pump::new(stream, weigh, writer);
        match self.try_spawn(pump) {
            Ok(task) => task.detach(),
            Err(rejected) => {
                let (pump, cause) = rejected.into_parts();
                pump.refuse(&cause);
            }
        }
        reader
    }

    pub(super) fn pump_on_io<S, W>(&self, pump: Pump<S, W>)
    where
        S: Stream + Send + 'static,
        S::Item: Send + 'static,
        W: Fn(&S::Item) -> usize + Send + 'static,
    {
        match self.level().lane().refusal() {
            Some(cause) => pump.refuse(&cause.into()),
            None => self.spawn_io(pump).detach(),
        }
    }
}
