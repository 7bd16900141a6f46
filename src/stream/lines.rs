//! [`chunks_of_lines`]: the bytes of a reader, in chunks that end with a line.

use std::io;
use std::mem;
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
/// to 1 MiB are good sizes. It needs no `BufReader`. A live source yields nothing before `size`
/// bytes of it have come, or its end.
///
/// # Errors
///
/// That of the reader. `InvalidData` for a line of more than 64 times `size`: then the input has
/// other line ends, or none. The whole lines before an error come first, and the stream ends with
/// the error.
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
///     .on_cpu(cpu.handle())
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
    ChunksOfLines {
        reader: Some(reader),
        room: vec![0; size.max(1)],
        read: Vec::new(),
        end: 0,
        error: None,
    }
}

pin_project! {
    /// Returned by [`chunks_of_lines`].
    #[must_use = "streams do nothing unless polled"]
    #[derive(Debug)]
    pub struct ChunksOfLines<R> {
        #[pin]
        reader: Option<R>,
        // For one read.
        room: Vec<u8>,
        read: Vec<u8>,
        // Of the last whole line in `read`.
        end: usize,
        error: Option<io::Error>,
    }
}

impl<R: AsyncRead> Stream for ChunksOfLines<R> {
    type Item = io::Result<Vec<u8>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        let size = this.room.len();
        while let Some(reader) = this.reader.as_mut().as_pin_mut() {
            let mut room = ReadBuf::new(this.room);
            *this.error = ready!(reader.poll_read(cx, &mut room)).err();
            let now = room.filled();
            if let Some(at) = now.iter().rposition(|byte| *byte == b'\n') {
                *this.end = this.read.len() + at + 1;
            }
            this.read.extend_from_slice(now);
            let is_over = now.is_empty() || this.error.is_some();
            if !is_over && this.read.len() >= size && *this.end > 0 {
                let rest = this.read.split_off(mem::take(this.end));
                return Poll::Ready(Some(Ok(mem::replace(this.read, rest))));
            }
            if this.read.len() > LONGEST * size {
                let what = format!("a line of more than {LONGEST} x {size} bytes");
                *this.error = Some(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            if this.error.is_some() {
                this.read.truncate(*this.end);
            }
            if is_over || this.error.is_some() {
                this.reader.set(None);
            }
        }
        let rest = mem::take(this.read);
        if rest.is_empty() {
            return Poll::Ready(this.error.take().map(Err));
        }
        Poll::Ready(Some(Ok(rest)))
    }
}
