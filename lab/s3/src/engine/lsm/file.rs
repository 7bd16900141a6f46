//! The format of a file: blocks of sorted rows, each column for itself.
//!
//! A block is its number of rows, the lengths of its three columns, and the
//! columns: what each value adds to the one before, the bytes of equal weight
//! side by side, deflated. It can be read without the rest of the file: for
//! range requests.

use std::io::{Read, Write};
use std::ops::{BitXor, Range};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use object_store_0_14::path::Path;

use super::Error;
use super::row::Row;

/// About half a MiB of this data.
pub const BLOCK_ROWS: usize = 62_400;

const HEADER: usize = 16;
const COLUMNS: usize = 3;
const WIDTH: usize = 8;

/// Fast, for what is compacted soon.
pub const FAST: Compression = Compression::new(1);
/// Smaller, for what stays.
pub const SMALL: Compression = Compression::new(3);

/// A file in the store. An engine would keep this in its manifest.
#[derive(Clone, Debug)]
pub struct File {
    pub path: Path,
    pub blocks: Vec<Range<u64>>,
}

/// `rows` in the order of their keys as a file: its bytes, and where its
/// blocks are.
pub fn encode(rows: &[Row], level: Compression) -> (Vec<u8>, Vec<Range<u64>>) {
    let mut bytes = Vec::new();
    let mut blocks = Vec::new();
    for rows in rows.chunks(BLOCK_ROWS) {
        let start = bytes.len() as u64;
        encode_block(rows, level, &mut bytes);
        blocks.push(start..bytes.len() as u64);
    }
    (bytes, blocks)
}

fn encode_block(rows: &[Row], level: Compression, bytes: &mut Vec<u8>) {
    let deflate =
        |values: &mut dyn Iterator<Item = u64>, difference| deflate(values, difference, level);
    let columns: [Vec<u8>; COLUMNS] = [
        deflate(&mut rows.iter().map(|row| row.series), u64::wrapping_sub),
        deflate(
            &mut rows.iter().map(|row| row.time as u64),
            u64::wrapping_sub,
        ),
        deflate(
            &mut rows.iter().map(|row| row.value.to_bits()),
            BitXor::bitxor,
        ),
    ];
    let lengths = columns.iter().map(Vec::len);
    for number in std::iter::once(rows.len()).chain(lengths) {
        bytes.extend((number as u32).to_le_bytes());
    }
    for column in columns {
        bytes.extend(column);
    }
}

fn deflate(
    values: &mut dyn Iterator<Item = u64>,
    difference: fn(u64, u64) -> u64,
    level: Compression,
) -> Vec<u8> {
    let mut before = 0;
    let changes: Vec<[u8; WIDTH]> = values
        .map(|value| difference(value, std::mem::replace(&mut before, value)).to_le_bytes())
        .collect();
    let planes: Vec<u8> = (0..WIDTH)
        .flat_map(|i| changes.iter().map(move |change| change[i]))
        .collect();
    let mut deflated = ZlibEncoder::new(Vec::new(), level);
    let written = deflated.write_all(&planes);
    written
        .and_then(|()| deflated.finish())
        .expect("a Vec takes all")
}

/// The rows of one block. What is cut short or damaged is an error (the deflated
/// columns have checksums).
pub fn decode_block(bytes: &[u8]) -> Result<Vec<Row>, Error> {
    let (header, mut rest) = bytes.split_at_checked(HEADER).ok_or("no header")?;
    let number = |i: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| header[i * 4 + byte]));
    let rows = number(0) as usize;
    let mut column = |i: usize| {
        let length = number(1 + i) as usize;
        let (column, after) = rest.split_at_checked(length).ok_or("cut short")?;
        rest = after;
        inflate(column, rows)
    };
    let (series, times, values) = (column(0)?, column(1)?, column(2)?);
    if !rest.is_empty() {
        return Err("more than a block".into());
    }
    let mut row = Row {
        series: 0,
        time: 0,
        value: 0.0,
    };
    let mut bits = 0;
    let changes = series.into_iter().zip(times).zip(values);
    Ok(changes
        .map(|((series, time), value)| {
            bits ^= value;
            row.series = row.series.wrapping_add(series);
            row.time = (row.time as u64).wrapping_add(time) as i64;
            row.value = f64::from_bits(bits);
            row
        })
        .collect())
}

fn inflate(column: &[u8], rows: usize) -> Result<Vec<u64>, Error> {
    let mut planes = Vec::with_capacity(rows * WIDTH);
    ZlibDecoder::new(column).read_to_end(&mut planes)?;
    if planes.len() != rows * WIDTH {
        return Err(format!("{} bytes for {rows} rows", planes.len()).into());
    }
    let change = |row| u64::from_le_bytes(std::array::from_fn(|i| planes[i * rows + row]));
    Ok((0..rows).map(change).collect())
}
