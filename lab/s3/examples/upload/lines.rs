//! Lines `key,value`, in blocks, and the rows that are encoded of them.

use std::io;

use bytes::{BufMut, Bytes, BytesMut};
use tokio_util::codec::Decoder;

use crate::service::Error;

/// A block has about as many bytes, and a line at most.
pub const BLOCK: usize = 64 * 1024;
/// A key and a value, as little-endian numbers.
pub const ROW: usize = 16;

/// Splits a text behind the last line that ends within a block.
pub struct WholeLines;

impl Decoder for WholeLines {
    type Item = BytesMut;
    type Error = io::Error;

    fn decode(&mut self, text: &mut BytesMut) -> io::Result<Option<BytesMut>> {
        if text.len() < BLOCK {
            text.reserve(BLOCK - text.len());
            return Ok(None);
        }
        match text.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => Ok(Some(text.split_to(end + 1))),
            // The rest of it might be longer than the memory.
            None => Err(io::Error::other("a line is too long")),
        }
    }

    fn decode_eof(&mut self, text: &mut BytesMut) -> io::Result<Option<BytesMut>> {
        Ok((!text.is_empty()).then(|| text.split()))
    }
}

/// The block, or the decoder's error.
pub type Block = io::Result<BytesMut>;

pub fn block_len(block: &Block) -> usize {
    block.as_ref().map_or(0, BytesMut::len)
}

/// The rows of a block.
pub struct Rows {
    pub count: usize,
    pub encoded: Bytes,
}

pub fn rows_len(rows: &Result<Rows, Error>) -> usize {
    rows.as_ref().map_or(0, |rows| rows.encoded.len())
}

pub fn encode(block: &[u8]) -> Result<Rows, Error> {
    let mut encoded = BytesMut::with_capacity(block.len());
    for line in std::str::from_utf8(block)?.lines() {
        let (key, value) = line.split_once(',').ok_or("a line has no comma")?;
        encoded.put_u64_le(key.parse()?);
        encoded.put_u64_le(value.parse()?);
    }
    Ok(Rows {
        count: encoded.len() / ROW,
        encoded: encoded.freeze(),
    })
}
