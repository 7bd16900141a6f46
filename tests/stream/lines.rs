//! Chunks that end with a line, of a reader that gives what it likes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::executor::block_on;
use futures::{FutureExt, StreamExt, TryStreamExt};
use tokio::io::{AsyncRead, ReadBuf};
use twolane::stream::chunks_of_lines;

/// Gives so many bytes at a time, and waits before each.
struct Slow<'a>(&'a [u8], usize, bool);

impl AsyncRead for Slow<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.2 = !self.2;
        if self.2 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let n = self.1.min(self.0.len()).min(buf.remaining());
        let (now, later) = self.0.split_at(n);
        buf.put_slice(now);
        self.0 = later;
        Poll::Ready(Ok(()))
    }
}

fn chunks(input: &[u8], at_a_time: usize, size: usize) -> io::Result<Vec<Vec<u8>>> {
    block_on(chunks_of_lines(Slow(input, at_a_time, false), size).try_collect())
}

#[test]
fn all_bytes_come_in_whole_lines() {
    let input: Vec<u8> = (0..1_000)
        .flat_map(|n| format!("line {n}\n").into_bytes())
        .collect();
    for (at_a_time, size) in [
        (1, 1),
        (3, 64),
        (7, 64),
        (64, 64),
        (1_000, 64),
        (5, 4_096),
        (1 << 20, 1 << 20),
    ] {
        for end in [&input[..], &input[..input.len() - 1]] {
            let chunks = chunks(end, at_a_time, size).unwrap();
            assert_eq!(chunks.concat(), end);
            let (last, others) = chunks.split_last().unwrap();
            assert!(others.iter().all(|chunk| chunk.ends_with(b"\n")));
            assert!(!last.is_empty());
            let longest = others.iter().map(Vec::len).max().unwrap_or(0);
            assert!(longest <= 2 * size + 9, "{longest} of {size}");
        }
    }
    assert!(chunks(b"", 1, 8).unwrap().is_empty());
}

#[test]
fn a_line_without_an_end_is_an_error() {
    let input = [b'x'; 10_000];
    let error = chunks(&input, 100, 16).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert!(error.to_string().contains("64 x 16 bytes"), "{error}");
    // Sixty times as long is one.
    assert_eq!(chunks(&input[..960], 100, 16).unwrap(), [vec![b'x'; 960]]);
}

/// What was read is not lost, but for a line that has no end.
#[test]
fn whole_lines_come_before_an_error() {
    struct ThenFails<'a>(Slow<'a>);
    impl AsyncRead for ThenFails<'_> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            match self.0.0 {
                [] => Poll::Ready(Err(io::Error::other("disk"))),
                _ => Pin::new(&mut self.0).poll_read(cx, buf),
            }
        }
    }
    let reader = ThenFails(Slow(b"1\n22\n33", 3, false));
    let mut chunks = chunks_of_lines(reader, 64);
    assert_eq!(block_on(chunks.next()).unwrap().unwrap(), b"1\n22\n");
    let error = block_on(chunks.next()).unwrap().unwrap_err();
    assert_eq!(error.to_string(), "disk");
    assert!(block_on(chunks.next()).is_none());
}

#[test]
fn an_error_of_the_reader_is_the_last_item() {
    struct Fails;
    impl AsyncRead for Fails {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::Error::other("disk")))
        }
    }
    let mut chunks = chunks_of_lines(Fails, 8);
    let first = chunks.next().now_or_never().unwrap().unwrap();
    assert_eq!(first.unwrap_err().to_string(), "disk");
    assert!(chunks.next().now_or_never().unwrap().is_none());
}
