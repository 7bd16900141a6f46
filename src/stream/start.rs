//! How an [`OnCpu`] starts, and the parts of a stream that runs:
//!
//! ```text
//! source ──> pump ──> chunks ──> workers ──> messages ──> consumer
//!            a task   a lock-    jobs of     a channel    the task that
//!            of its   free       the CPU     of Tokio's   polls `Buffered`
//!            lane     queue      lane
//!               ^                                            │
//!               └─────────── room in the window <────────────┘
//! ```
//!
//! - **Pump** (`pump.rs`). It reads the source while the window (`window.rs`) has room,
//!   cuts what it has read into chunks, and spawns workers: at most as many as the lane
//!   has threads. The jobs of a stream need no permit of a limited queue, since the window
//!   bounds what they hold. A job that reads the stream may hold the last permit.
//! - **Workers** (`worker.rs`). Each takes chunks until its batch is over, sends all outputs
//!   in one message, and ends when no chunk is left. If an input takes long, the process's
//!   ticker sends the outputs before it (`batch.rs`). What inputs take is measured (`pace.rs`), for
//!   the sizes of chunks and batches. The number of workers follows the
//!   protocol of `workers.rs`: no chunk is left without a worker.
//! - **Consumer** (`buffered.rs`). It puts the pieces in order by the index of their first
//!   input, and gives room back to the window as it hands outputs out.
//!
//! Neither the pump nor a worker waits for the consumer, except for room. So the stream
//! goes on while its consumer is busy, until the window is full.
//!
//! **Ends.** The pump sends how many inputs there were. The panic of a stage travels with the
//! outputs, at its place. A lane that drops the pump or a worker drops a guard that tells the
//! consumer. So a stream that is short ends with an error.

use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use tokio::sync::mpsc::unbounded_channel;

use twolane_core::adapters;

use super::buffered::Buffered;
use super::drop_on_lane::DropOnLane;
use super::limit::Limit;
use super::on_cpu::OnCpu;
use super::pump::{Feed, Pump, SourceLane};
use super::runner::{RunChunk, Runner};
use super::shared::{Limits, Shared};
use super::stage::Stage;

impl<S, G, L> OnCpu<S, G, L>
where
    S: Stream + Send + 'static,
    S::Item: Send + 'static,
    G: Stage<S::Item>,
    G::Output: Send,
    L: Limit<S::Item, G::Output>,
{
    /// Starts the stream. Its outputs come in the order of the source.
    ///
    /// `window` is how many inputs may be under way: queued, running, or finished and not
    /// yet taken. So input *k* + `window` is not read before the outputs of input *k* are
    /// taken. Room comes back an eighth of the window at a time (one by one up to a window
    /// of 15), and for a stage that makes any number of outputs at the end of a batch. Give
    /// the window about 4 ms of work for each thread: on two threads 800 items of 10 µs, 80,000
    /// of 100 ns. With less, small items can't travel in batches, and
    /// each one pays for its hop.
    ///
    /// It starts at once, as [`Handle::spawn_cpu`](crate::Handle::spawn_cpu) does, and
    /// goes on whether or not the returned stream is polled.
    ///
    /// # Panics
    ///
    /// If `window` is 0.
    ///
    /// # Errors
    ///
    /// None here; see [`Buffered`]. A stage that can fail returns `Result`s, which are
    /// outputs like any other: the stream does not end at an `Err`. Read it up to the first
    /// one and drop it, as below: the drop cancels the items behind the error.
    ///
    /// # Cost
    ///
    /// Some 30 ns of a core for each item, and two wake-ups of threads for each batch; see
    /// [cost](crate::guide::streams#cost).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use futures::StreamExt;
    /// use twolane::CpuIteratorExt;
    ///
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let mut squares = (0..1_000_u64)
    ///     .on_cpu(cpu.handle())
    ///     .map(|n| n * n)
    ///     .buffered(256);
    /// let mut sum = 0;
    /// while let Some(square) = squares.next().await {
    ///     sum += square.unwrap(); // an error if a stage panicked, or a lane has ended
    /// }
    /// assert_eq!(sum, 332_833_500);
    /// # }
    /// ```
    ///
    /// With a source and a stage that can fail. `|row| row?` puts the [`JoinError`] of a panic
    /// or of a lane that has ended into the stage's own error, which is `From<JoinError>`;
    /// [`io::Error`](std::io::Error) and `Box<dyn Error + Send + Sync>` are. Then
    /// `futures::TryStreamExt` reads up to the first error:
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use futures::{Stream, StreamExt, TryStreamExt};
    /// use std::io;
    /// use twolane::{CpuStreamExt, Handle};
    ///
    /// async fn sum<S>(cpu: &Handle, body: S) -> io::Result<u32>
    /// where
    ///     S: Stream<Item = io::Result<&'static str>> + Send + 'static,
    /// {
    ///     let mut numbers = body
    ///         .on_cpu(cpu)
    ///         .map(|text| text.and_then(|text| text.parse::<u32>().map_err(io::Error::other)))
    ///         .buffered(64)
    ///         .map(|number| number?);
    ///     let mut sum = 0;
    ///     while let Some(number) = numbers.try_next().await? {
    ///         sum += number;
    ///     }
    ///     Ok(sum) // here, and at the `?`, `numbers` is dropped
    /// }
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let body = futures::stream::iter([Ok("7"), Err(io::Error::other("reset by peer")), Ok("1")]);
    /// assert_eq!(sum(cpu.handle(), body).await.unwrap_err().to_string(), "reset by peer");
    /// # }
    /// ```
    ///
    /// [`JoinError`]: crate::JoinError
    #[track_caller]
    pub fn buffered(self, window: usize) -> Buffered<G::Output> {
        self.start(window, true)
    }

    /// Starts the stream. Its outputs come as they are finished.
    ///
    /// As [`buffered`](Self::buffered), without the order: an item that takes long does
    /// not hold back those behind it. At most `window` inputs are under way.
    ///
    /// # Panics
    ///
    /// If `window` is 0.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use futures::TryStreamExt;
    /// use twolane::CpuIteratorExt;
    ///
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let numbers = (0..10).on_cpu(cpu.handle()).map(|n| n + 1);
    /// let numbers = numbers.buffer_unordered(4);
    /// let mut numbers: Vec<_> = numbers.try_collect().await.unwrap();
    /// numbers.sort();
    /// assert_eq!(numbers, (1..=10).collect::<Vec<_>>());
    /// # }
    /// ```
    #[track_caller]
    pub fn buffer_unordered(self, window: usize) -> Buffered<G::Output> {
        self.start(window, false)
    }

    #[track_caller]
    fn start(self, window: usize, ordered: bool) -> Buffered<G::Output> {
        assert!(
            window > 0,
            "`{}(0)`: the window of a stream is at least 1 item; give it some milliseconds of \
             work for each thread",
            if ordered {
                "buffered"
            } else {
                "buffer_unordered"
            }
        );
        let (bytes, input_size, output_size) = match self.limit.into_bytes() {
            None => (usize::MAX, None, None),
            Some(bytes) => (bytes.limit, Some(bytes.input), Some(bytes.output)),
        };
        let limits = Limits {
            workers: self.handle.worker_threads(),
            ordered,
            items: window,
            bytes,
            batch: self.batch,
            reader: self.reader_timeout.map(|time| (time, Arc::default())),
        };
        // Pump and workers have the site of this call. They need no permit: the window bounds
        // them, and a job that reads the stream may hold the last one.
        // Nor do they have a deadline: the stream would be short, and its reader would wait.
        let at_call = adapters::at(&self.handle, Location::caller());
        let at_call = adapters::without_deadline(&at_call);
        let handle = at_call.without_limit();
        let stages = Arc::new(DropOnLane::new(&handle, self.stages));
        let of_states = handle.clone();
        let make = move || Box::new(Runner::new(&of_states, &stages)) as Box<dyn RunChunk<_, _>>;
        let (messages, receiver) = unbounded_channel();
        let shared = Shared::new(&limits, Box::new(make), output_size, messages);
        let shared = Arc::new(shared);
        let reader = limits.reader.clone();
        let feed = Feed::new(&handle, &shared, input_size, self.source_lane, reader);
        let pump = Pump::new(self.source, feed);
        let pump = match self.source_lane {
            // The source is the user's: what it submits there needs permits, as elsewhere.
            // Boxed, as the CPU lane boxes it: a task of Tokio's is much code for each type.
            SourceLane::Io => at_call.spawn_io(boxed(pump)),
            SourceLane::Cpu => handle.spawn(pump),
        };
        let window = shared.window.clone();
        let cancel = Box::new(move || shared.cancel(&handle));
        Buffered::new(receiver, pump, window, cancel, &limits)
    }
}

fn boxed(
    pump: impl Future<Output = ()> + Send + 'static,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(pump)
}
