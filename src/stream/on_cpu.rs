//! [`OnCpu`]: the stages of a stream, before it starts.

use std::fmt;
use std::time::Duration;

use futures_core::Stream;

use super::limit::{ByBytes, ByItems};
use super::pump::SourceLane;
use super::stage::{FlatMap, Stage, Unchanged};
use twolane_core::Handle;

/// How long a batch computes, unless a user sets it.
const BATCH_TIME: Duration = Duration::from_micros(500);

/// A source, and the stages that its items go through on the CPU lane.
///
/// Returned by [`CpuStreamExt::on_cpu`](crate::CpuStreamExt::on_cpu) and
/// [`CpuIteratorExt::on_cpu`](crate::CpuIteratorExt::on_cpu). `S` is the source, `G` its
/// stages. Add stages, then start it with [`buffered`](Self::buffered) or
/// [`buffer_unordered`](Self::buffer_unordered). The guide has
/// [the whole story](crate::guide::streams).
///
/// All stages of one `OnCpu` run in the same job: an item goes through them without a hop
/// between threads. A stage is a closure that several threads call at once, so it is `Fn`.
/// State that it changes is made [per worker](Self::map_init). A filter is a
/// [`flat_map`](Self::flat_map) that returns an `Option`. The methods of
/// `futures::StreamExt` are there once the stream is started.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use futures::TryStreamExt;
/// use twolane::CpuStreamExt;
///
/// const WINDOW: usize = 64;
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let lines = futures::stream::iter(["3", "1", "2"]);
/// let numbers = lines
///     .on_cpu(cpu.handle())
///     .map(|line| line.parse::<u32>().unwrap_or(0))
///     .map(|n| n * n)
///     .buffered(WINDOW);
/// assert_eq!(numbers.try_collect::<Vec<_>>().await.unwrap(), [9, 1, 4]);
/// # }
/// ```
#[must_use = "nothing runs before `buffered` or `buffer_unordered`"]
pub struct OnCpu<S, G, L = ByItems> {
    pub(super) handle: Handle,
    pub(super) source: S,
    pub(super) source_lane: SourceLane,
    pub(super) stages: G,
    pub(super) batch: Duration,
    pub(super) reader_timeout: Option<Duration>,
    pub(super) limit: L,
}

impl<S> OnCpu<S, Unchanged>
where
    S: Stream,
    S::Item: 'static,
{
    pub(super) fn new(handle: &Handle, source: S, source_lane: SourceLane) -> Self {
        Self {
            handle: handle.clone(),
            source,
            source_lane,
            stages: Unchanged,
            batch: BATCH_TIME,
            reader_timeout: None,
            limit: ByItems(()),
        }
    }
}

impl<S, G> OnCpu<S, G>
where
    S: Stream,
    G: Stage<S::Item>,
{
    fn with<H, M>(self, add: impl FnOnce(G) -> H, limit: M) -> OnCpu<S, H, M> {
        OnCpu {
            handle: self.handle,
            source: self.source,
            source_lane: self.source_lane,
            stages: add(self.stages),
            batch: self.batch,
            reader_timeout: self.reader_timeout,
            limit,
        }
    }

    fn stage<N, F>(self, init: N, f: F) -> OnCpu<S, FlatMap<G, N, F>> {
        self.with(|before| FlatMap { before, init, f }, ByItems(()))
    }

    /// Adds a stage that turns each item into another one: see the example of [`OnCpu`].
    pub fn map<P, F>(self, f: F) -> OnCpu<S, impl Stage<S::Item, Output = P>>
    where
        F: Fn(G::Output) -> P + Send + Sync + 'static,
        P: 'static,
    {
        self.map_init(|| (), move |(), item| f(item))
    }

    /// Adds a stage with state of its own in each worker.
    ///
    /// `init` runs on the CPU lane: at most once for each of the lane's threads, and at
    /// most as often as the window has items. Use it for a decoder, a buffer, a random
    /// generator. Which items share a state is not defined.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// # use futures::TryStreamExt;
    /// use twolane::CpuStreamExt;
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let upper = futures::stream::iter(["a", "b"])
    ///     .on_cpu(cpu.handle())
    ///     .map_init(String::new, |buffer, line| {
    ///         buffer.clear();
    ///         buffer.push_str(line);
    ///         buffer.make_ascii_uppercase();
    ///         buffer.len()
    ///     })
    ///     .buffered(64);
    /// assert_eq!(upper.try_collect::<Vec<_>>().await.unwrap(), [1, 1]);
    /// # }
    /// ```
    pub fn map_init<P, T, N, F>(self, init: N, f: F) -> OnCpu<S, impl Stage<S::Item, Output = P>>
    where
        N: Fn() -> T + Send + Sync + 'static,
        F: Fn(&mut T, G::Output) -> P + Send + Sync + 'static,
        T: Send + 'static,
        P: 'static,
    {
        // The `Option` costs nothing: the stages are inlined into one loop.
        self.stage(init, move |state: &mut T, item| Some(f(state, item)))
    }

    /// Adds a stage that turns each item into any number of others.
    ///
    /// A block becomes its rows; an `Option` makes a filter. The iterator runs on the CPU
    /// lane as well. All outputs of one input are handed over together, so they are in
    /// memory at once: the window counts the inputs (and, with
    /// [`max_bytes`](Self::max_bytes), the bytes of all of them).
    ///
    /// If `f` can fail, use [`map`](Self::map) to a `Result` of a `Vec`, and flatten where
    /// the stream is read: `.map_ok(|rows| stream::iter(rows.into_iter().map(Ok)))` and
    /// `.try_flatten()` of `futures::TryStreamExt`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// # use futures::TryStreamExt;
    /// use twolane::CpuStreamExt;
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let odd = futures::stream::iter(["1 2", "3 4 5"])
    ///     .on_cpu(cpu.handle())
    ///     .flat_map(|block| block.split(' '))
    ///     .flat_map(|word| word.parse::<u32>().ok().filter(|n| n % 2 == 1))
    ///     .buffered(64);
    /// assert_eq!(odd.try_collect::<Vec<_>>().await.unwrap(), [1, 3, 5]);
    /// # }
    /// ```
    pub fn flat_map<P, F>(self, f: F) -> OnCpu<S, impl Stage<S::Item, Output = P::Item>>
    where
        F: Fn(G::Output) -> P + Send + Sync + 'static,
        P: IntoIterator,
        P::Item: 'static,
    {
        self.stage(|| (), move |(): &mut (), item| f(item))
    }

    /// Limits the bytes that are under way, in addition to the items. Call it after the
    /// stages.
    ///
    /// `input` gives the size of an input, which counts from its reading until its job
    /// ends. `output` gives the size of an output, which counts from there until it is
    /// taken. Each runs once for each item: `input` on the lane of the source, `output` on
    /// the CPU lane.
    ///
    /// The source is not read while `limit` is reached. An input that does not fit waits,
    /// and one that is larger than `limit` goes alone. So at most `limit` bytes are under
    /// way, and one input that waits. Outputs that are larger than their inputs come on
    /// top, but only those of inputs that were under way already. The room of outputs comes
    /// back batch by batch, as they are taken.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// # use futures::TryStreamExt;
    /// use twolane::CpuStreamExt;
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// const MIB: usize = 1 << 20;
    /// let blocks = futures::stream::iter(vec![vec![7_u8; 4096]; 10]);
    /// let doubled = blocks
    ///     .on_cpu(cpu.handle())
    ///     .map(|block| block.repeat(2))
    ///     .max_bytes(MIB, Vec::len, Vec::len)
    ///     .buffered(usize::MAX);
    /// assert_eq!(doubled.try_collect::<Vec<_>>().await.unwrap().len(), 10);
    /// # }
    /// ```
    pub fn max_bytes<I, P>(
        self,
        limit: usize,
        input: I,
        output: P,
    ) -> OnCpu<S, G, ByBytes<S::Item, G::Output>>
    where
        I: Fn(&S::Item) -> usize + Send + Sync + 'static,
        P: Fn(&G::Output) -> usize + Send + Sync + 'static,
    {
        let limit = ByBytes {
            limit,
            input: Box::new(input),
            output: Box::new(output),
        };
        self.with(|stages| stages, limit)
    }
}

impl<S, G, L> OnCpu<S, G, L> {
    /// Polls the source on the CPU lane, too. (An iterator is called there anyway.)
    ///
    /// For a stream that computes: a decoder over an `AsyncRead`, say. It is one job of the
    /// lane, without a permit of a limited queue. What it reads should come from the I/O
    /// lane, by [`stream_from_io`](crate::Handle::stream_from_io) or an adapter.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// # use futures::{StreamExt, TryStreamExt};
    /// use twolane::CpuStreamExt;
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let decoded = futures::stream::iter(["1", "2"]).map(|text| text.parse::<u32>());
    /// let sum = decoded
    ///     .on_cpu(cpu.handle())
    ///     .source_on_cpu()
    ///     .map(|n| n.unwrap_or(0) + 1)
    ///     .buffered(64);
    /// assert_eq!(sum.try_collect::<Vec<_>>().await.unwrap(), [2, 3]);
    /// # }
    /// ```
    pub fn source_on_cpu(mut self) -> Self {
        self.source_lane = SourceLane::Cpu;
        self
    }

    /// Sets how often the reader gets outputs, from all workers together. Default: 500 µs.
    ///
    /// Each of *n* workers hands over after *n* times that, but at most 4 ms (or this time, if it
    /// is longer), and at the end of its slice of 5 to 10 ms.
    ///
    /// A longer time costs fewer wake-ups; a shorter one lets the first outputs come
    /// earlier. With zero, each item is a batch of its own. A worker that finds no further
    /// input hands over what it has, so nothing waits for a batch to fill. It also does so
    /// before the batch would take longer than this with one more item, as far as it can tell
    /// from the items before.
    ///
    /// **No output waits for a slow item behind it.** If an item takes longer after all, the
    /// outputs before it are handed over while it runs, 5 to 10 ms after the batch began.
    /// There is one exception: of items that take less than a microsecond, up to 16 run in one
    /// go, and a slow one among these holds back up to 15 before it, unless there was a slow one
    /// among the 4,096 items before. (With `buffered`, its own
    /// output comes before those behind it, as ever.)
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// # use futures::TryStreamExt;
    /// use std::time::Duration;
    /// use twolane::CpuStreamExt;
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let ones = futures::stream::iter([1, 1])
    ///     .on_cpu(cpu.handle())
    ///     .batch_time(Duration::from_millis(2))
    ///     .buffered(1);
    /// assert_eq!(ones.try_collect::<Vec<_>>().await.unwrap(), [1, 1]);
    /// # }
    /// ```
    pub fn batch_time(mut self, time: Duration) -> Self {
        self.batch = time;
        self
    }

    /// Ends the stream if its reader takes nothing for this time, though the window is full.
    ///
    /// For a reader that may stall, such as a client that stops reading. The source, the stages'
    /// states and what waits for room are dropped, and behind the outputs that are there the reader
    /// gets a [`JoinErrorKind::Expired`](crate::JoinErrorKind::Expired). Each output that is taken
    /// begins the time anew; time in which the source or the lane keeps the reader waiting does not
    /// count. The stream ends within twice the time. The lane itself measures it, on any Tokio
    /// runtime. Default: none, since a reader in the same program may have a reason to wait.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// # use futures::StreamExt;
    /// use std::time::Duration;
    /// use twolane::{CpuIteratorExt, JoinErrorKind};
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let mut endless = (0_u64..)
    ///     .on_cpu(cpu.handle())
    ///     .reader_timeout(Duration::from_millis(10))
    ///     .buffered(4);
    /// std::thread::sleep(Duration::from_millis(500)); // the reader does something else
    /// while let Some(number) = endless.next().await {
    ///     if let Err(error) = number {
    ///         assert_eq!(error.kind(), JoinErrorKind::Expired);
    ///     }
    /// }
    /// # }
    /// ```
    pub fn reader_timeout(mut self, time: Duration) -> Self {
        self.reader_timeout = Some(time);
        self
    }
}

impl<S, G, L> fmt::Debug for OnCpu<S, G, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnCpu")
            .field("priority", &self.handle.priority())
            .field("source_lane", &self.source_lane)
            .field("batch_time", &self.batch)
            .finish_non_exhaustive()
    }
}
