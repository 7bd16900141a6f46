//! [`chunks_of_lines`]: the bytes of a reader, in chunks that end with a line.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, ReadBuf};

/// A line may be so many times as long as a chunk.
const LONGEST: usize = 64;

/// Reads an [`AsyncRead`] in chunks of about `size` bytes, each of which ends with a `\n` (but the
/// last one, if the input does not).
///
/// The source for a stream of lines on the CPU lane: a stage splits each chunk. With a line as the
/// item, two cores are hardly faster than one, since each line is allocated and handed over. 64 KiB
/// to 1 MiB are good sizes. It needs no `BufReader`.
///
/// # Errors
///
/// That of the reader. `InvalidData` for a line of more than 64 times `size`: then the input has
/// other line ends, or none. The stream ends with an error.
///
/// # Examples
///
/// ```
/// use futures::StreamExt;
/// use twolane::stream::chunks_of_lines;
/// use twolane::{CpuRuntime, CpuStreamExt};
/// # #[tokio::main] async fn main() -> std::io::Result<()> {
/// let cpu = CpuRuntime::new().unwrap();
/// let file = &b"1,2\n3,4\n"[..]; // a file, a socket, a decoder
/// let mut sums = chunks_of_lines(file, 64 << 10)
///     .on_cpu(&cpu.handle())
///     .map(|chunk| {
///         let chunk = String::from_utf8(chunk?).map_err(std::io::Error::other)?;
///         let fields = chunk.lines().flat_map(|line| line.split(','));
///         Ok::<u32, std::io::Error>(fields.flat_map(str::parse::<u32>).sum())
///     })
///     .buffered(16);
/// while let Some(sum) = sums.next().await {
///     assert_eq!(sum.unwrap()?, 10);
/// }
/// # Ok(()) }
/// ```
pub fn chunks_of_lines<R: AsyncRead>(reader: R, size: usize) -> ChunksOfLines<R> {
    let reader = Some(reader);
    let size = size.max(1);
    let read = Vec::new();
    ChunksOfLines { reader, size, read }
}

pin_project! {
    /// Returned by [`chunks_of_lines`].
    #[must_use = "streams do nothing unless polled"]
    #[derive(Debug)]
    pub struct ChunksOfLines<R> {
        #[pin]
        reader: Option<R>,
        size: usize,
        read: Vec<u8>,
    }
}

impl<R: AsyncRead> Stream for ChunksOfLines<R> {
    type Item = io::Result<Vec<u8>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        loop {
            let Some(reader) = this.reader.as_mut().as_pin_mut() else {
                return Poll::Ready(None);
            };
            // Room for a chunk, and what is left of the last line.
            let before = this.read.len();
            this.read.resize(before + *this.size, 0);
            let mut room = ReadBuf::new(&mut this.read[before..]);
            let polled = reader.poll_read(cx, &mut room);
            let now = before + room.filled().len();
            this.read.truncate(now);
            if let Err(error) = ready!(polled) {
                this.reader.set(None);
                return Poll::Ready(Some(Err(error)));
            }
            if now == before {
                this.reader.set(None);
                let rest = std::mem::take(this.read);
                return Poll::Ready((!rest.is_empty()).then_some(Ok(rest)));
            }
            if now < *this.size {
                continue;
            }
            if let Some(end) = this.read.iter().rposition(|byte| *byte == b'\n') {
                let rest = this.read.split_off(end + 1);
                return Poll::Ready(Some(Ok(std::mem::replace(this.read, rest))));
            }
            if now > LONGEST * *this.size {
                this.reader.set(None);
                let what = format!("a line of more than {LONGEST} x {} bytes", this.size);
                return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::InvalidData, what))));
            }
        }
    }
}
