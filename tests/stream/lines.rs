//! Chunks that end with a line, of a reader that gives what it likes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::executor::block_on;
use futures::future::join;
use futures::{StreamExt, TryStreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream, ReadBuf, duplex};
use twolane::stream::chunks_of_lines;

/// Writes so many bytes at a time, beside what reads them.
async fn beside<T>(input: &[u8], at_a_time: usize, read: impl AsyncFnOnce(DuplexStream) -> T) -> T {
    let (mut writer, reader) = duplex(at_a_time);
    let write = async move {
        // An error: nothing reads any more.
        let _ = writer.write_all(input).await;
    };
    join(write, read(reader)).await.1
}

fn chunks(input: &[u8], at_a_time: usize, size: usize) -> io::Result<Vec<Vec<u8>>> {
    let read = async |reader| chunks_of_lines(reader, size).try_collect().await;
    block_on(beside(input, at_a_time, read))
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

/// What was read is not lost, but for a line that has no end. The error is the last item.
#[test]
fn whole_lines_come_before_an_error_of_the_reader() {
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
    for (text, whole) in [("1\n22\n33", Some("1\n22\n")), ("", None)] {
        block_on(beside(text.as_bytes(), 3, async |reader| {
            let mut chunks = chunks_of_lines(reader.chain(Fails), 64);
            if let Some(whole) = whole {
                assert_eq!(chunks.next().await.unwrap().unwrap(), whole.as_bytes());
            }
            let error = chunks.next().await.unwrap().unwrap_err();
            assert_eq!(error.to_string(), "disk");
            assert!(chunks.next().await.is_none());
        }));
    }
}
